//! Voice sessions for tests: an agent with a model that the test plays, and a client that reports what it has played.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_agent::Model;
use toolwright_agent::voice::{
    ClientInput, ClientOutput, DecidedBy, EndReason, Outcome, Speaker, StartRequest, VoiceAgent, VoiceClient,
    VoiceSection,
};
use toolwright_orchestrator::store::{Memory, Store};

use crate::scripted_voice::{ModelSide, ScriptedVoice};
use crate::support::{Fixture, options};

pub struct Voice {
    pub fixture: Fixture,
    pub server: ScriptedVoice,
    pub agent: VoiceAgent,
}

impl Voice {
    pub async fn new() -> Self {
        Self::with(json!({})).await
    }

    pub async fn with(section: Value) -> Self {
        let server = ScriptedVoice::start().await;
        Self::on(Fixture::on(Store::Memory(Memory::default()), Model::Offline, options()), server, section)
    }

    /// With a fixture and a model of its own; `section` may name another provider.
    pub fn on(fixture: Fixture, server: ScriptedVoice, mut section: Value) -> Self {
        if section.get("provider").is_none() {
            section["provider"] = "gemini-live".into();
            section["model"] = "gemini-2.5-live".into();
        }
        section["url"] = server.url.as_str().into();
        let section: VoiceSection = serde_json::from_value(section).unwrap();
        let voice = section.options(&|_| None).unwrap().unwrap();
        let agent = VoiceAgent::new(fixture.agent.clone(), voice);
        Self { fixture, server, agent }
    }

    pub fn request(&self) -> StartRequest {
        StartRequest {
            principal: Arc::new(Fixture::principal()),
            session: None,
            resume_token: None,
            client_id: None,
            input_rate: 16_000,
            output_rate: 24_000,
            language: Some("en".to_owned()),
        }
    }

    pub async fn start(&mut self) -> (Caller, ModelSide) {
        self.start_with(self.request()).await
    }

    pub async fn start_with(&mut self, request: StartRequest) -> (Caller, ModelSide) {
        let (client, model) = tokio::join!(self.agent.start(request), self.server.accept());
        let mut caller = Caller::new(client.unwrap());
        let ready = caller.wait(|output| match output {
            ClientOutput::Ready(ready) => Some(ready.clone()),
            _ => None,
        });
        let ready = ready.await;
        (caller.session, caller.token) = (ready.session, ready.resume_token);
        (caller, model)
    }
}

/// A tool changes the session with these intents.
pub async fn change(model: &mut ModelSide, id: &str, intents: &[Value]) {
    model.calls(&[(id, "session_change", json!({ "intents": intents }))]);
    assert_eq!(model.result().await.1, json!({ "output": { "done": "session_change" } }));
}

/// The client's side.
pub struct Caller {
    pub client: VoiceClient,
    pub session: String,
    pub token: String,
}

impl Caller {
    pub fn new(client: VoiceClient) -> Self {
        Self { client, session: String::new(), token: String::new() }
    }

    pub async fn wait<T>(&mut self, find: impl Fn(&ClientOutput) -> Option<T>) -> T {
        loop {
            let output = self.client.output.next().await;
            if let ClientOutput::AudioEnded { item, ms } = &output {
                self.send(ClientInput::Played { item: item.clone(), ms: *ms }).await;
            }
            if let Some(found) = find(&output) {
                return found;
            }
        }
    }

    pub async fn send(&self, input: ClientInput) {
        // A session that has ended takes nothing.
        let _ = self.client.input.send(input).await;
    }

    /// Waits for the end of the model's answer.
    pub async fn answer(&mut self) -> String {
        self.wait(|output| match output {
            ClientOutput::Transcript { speaker: Speaker::Assistant, text, is_final: true, .. } => {
                Some(text.clone())
            }
            _ => None,
        })
        .await
    }

    pub async fn question(&mut self) -> String {
        self.wait(|output| match output {
            ClientOutput::ConfirmationRequested(question) => Some(question.id.clone()),
            _ => None,
        })
        .await
    }

    pub async fn decision(&mut self) -> (Outcome, DecidedBy) {
        self.wait(|output| match output {
            ClientOutput::ConfirmationDecided { outcome, by, .. } => Some((*outcome, *by)),
            _ => None,
        })
        .await
    }

    pub async fn end(&mut self) -> EndReason {
        self.wait(|output| match output {
            ClientOutput::Ended { reason } => Some(*reason),
            _ => None,
        })
        .await
    }

    /// Sent until the session confirms an unknown answer. It contains everything that was sent before.
    pub async fn until_now(&mut self) -> Vec<ClientOutput> {
        self.send(ClientInput::Confirm { id: "nobody".to_owned(), approved: true }).await;
        let mut outputs = Vec::new();
        loop {
            let output = self.client.output.next().await;
            if matches!(output, ClientOutput::Warning { code: "unknown_confirmation", .. }) {
                return outputs;
            }
            outputs.push(output);
        }
    }

    /// The error of the next finished call.
    pub async fn finished(&mut self) -> Option<String> {
        self.wait(|output| match output {
            ClientOutput::ToolFinished { error, .. } => Some(error.clone()),
            _ => None,
        })
        .await
    }
}
