//! One conversation: sends the recording in real time, then silence, as a microphone would, until the answer is over.
//! Decides when to stop; knows neither files nor the terminal.

use std::collections::{BTreeSet, HashMap};

use futures_util::{SinkExt as _, StreamExt as _};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::connection::{Socket, Target, connection_lost};
use super::message::ServerMessage;
use super::playback::{Playback, PlaybackPosition, samples_of};
use super::wav::Recording;
use crate::output::Failure;

const OUTPUT_RATE: u32 = 24000;
const FRAME_MS: u64 = 40;
/// The time of a frame with `--fast`.
const FAST_FRAME_MS: u64 = 5;
/// Frames between two reports of the playback position.
const FRAMES_PER_REPORT: u64 = 6;
/// An answer is over after this time without an event: a tool call may follow the speech.
const QUIET: Duration = Duration::from_millis(1500);
/// How long a stopped session may take to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// Louder samples are speech.
const SPEECH_LEVEL: u16 = 500;

/// How confirmation requests are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Confirm {
    /// Approve every confirmation request
    Yes,
    /// Reject every confirmation request
    No,
    /// Ask on the terminal; without one, only speech in the recording answers
    Ask,
}

pub struct Script<'a> {
    pub recording: &'a Recording,
    pub is_fast: bool,
    pub confirm: Confirm,
    /// Answers from the terminal.
    pub answers: mpsc::Receiver<bool>,
    /// How long an answer may take.
    pub timeout: Duration,
    pub session: Option<String>,
    pub language: Option<String>,
    /// Called for each event that a user may want to see.
    pub on_event: &'a mut dyn FnMut(&Event),
}

/// An event of a conversation.
#[derive(Debug)]
pub enum Event {
    Said(Utterance),
    ToolStarted(String),
    ToolFinished(Call),
    Question(ConfirmationPrompt),
    Message(Value),
    Warning(String),
}

#[derive(Debug, Clone, Serialize)]
pub struct Utterance {
    pub role: String,
    pub text: String,
    pub interrupted: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub call_id: String,
    pub tool: String,
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct ConfirmationPrompt {
    pub id: String,
    pub tool: String,
    pub args: Value,
    pub preview: String,
    /// `None` while it is open.
    pub outcome: Option<String>,
    pub by: Option<String>,
}

/// The outcome of the conversation.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    pub session_id: String,
    pub transcript: Vec<Utterance>,
    pub calls: Vec<Call>,
    pub confirmations: Vec<ConfirmationPrompt>,
    pub messages: Vec<Value>,
    /// Why the session ended.
    pub reason: String,
    /// The time until which the server refuses this client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_until: Option<String>,
    /// The audio so far.
    #[serde(skip)]
    pub heard: Vec<i16>,
    /// Whether an answer came in time.
    pub answered: bool,
}

impl Outcome {
    pub fn recording(&self) -> Recording {
        Recording { rate: OUTPUT_RATE, samples: self.heard.clone() }
    }
}

pub async fn converse(target: &Target, script: Script<'_>) -> Result<Outcome, Failure> {
    let socket = target.connect().await?;
    let mut conversation = Conversation::new(socket, script);
    conversation.start().await?;
    conversation.run().await?;
    let Conversation { mut outcome, playback, .. } = conversation;
    outcome.heard = playback.heard;
    Ok(outcome)
}

struct Conversation<'a> {
    socket: Socket,
    script: Script<'a>,
    outcome: Outcome,
    playback: Playback,
    /// Pieces of the current transcript, by role.
    pieces: HashMap<String, String>,
    running: BTreeSet<String>,
    /// Samples of the recording that were sent.
    sent: usize,
    /// The end of the speech in the recording.
    speech_end: usize,
    frames: u64,
    last_activity: Instant,
    /// All of the recording was sent, or the session was stopped.
    deadline: Option<Instant>,
    is_stopped: bool,
    awaits_farewell: bool,
    last_error: Option<(String, String)>,
}

impl<'a> Conversation<'a> {
    fn new(socket: Socket, script: Script<'a>) -> Self {
        let is_loud = |sample: &i16| sample.unsigned_abs() > SPEECH_LEVEL;
        let speech_end = script.recording.samples.iter().rposition(is_loud).unwrap_or_default();
        Self {
            socket,
            script,
            outcome: Outcome::default(),
            playback: Playback::new(OUTPUT_RATE),
            pieces: HashMap::new(),
            running: BTreeSet::new(),
            sent: 0,
            speech_end,
            frames: 0,
            last_activity: Instant::now(),
            deadline: None,
            is_stopped: false,
            awaits_farewell: false,
            last_error: None,
        }
    }

    async fn start(&mut self) -> Result<(), Failure> {
        let mut start = json!({
            "type": "start",
            "version": 1,
            "inputSampleRate": self.script.recording.rate,
            "outputSampleRate": OUTPUT_RATE,
        });
        for (field, value) in [("sessionId", &self.script.session), ("language", &self.script.language)] {
            if let Some(value) = value {
                start[field] = value.as_str().into();
            }
        }
        self.send(start).await
    }

    /// Runs until the server closes the connection.
    async fn run(&mut self) -> Result<(), Failure> {
        let frame = if self.script.is_fast { FAST_FRAME_MS } else { FRAME_MS };
        let mut frames = interval(Duration::from_millis(frame));
        frames.set_missed_tick_behavior(MissedTickBehavior::Burst);
        loop {
            let is_ready = !self.outcome.session_id.is_empty();
            tokio::select! {
                message = self.socket.next() => match message {
                    None => return self.closed(None),
                    Some(Err(error)) => return Err(connection_lost(&error)),
                    Some(Ok(Message::Close(frame))) => return self.closed(frame),
                    Some(Ok(Message::Text(text))) => self.receive(&text).await?,
                    Some(Ok(Message::Binary(pcm))) => self.playback.add(&pcm),
                    Some(Ok(_)) => {}
                },
                _ = frames.tick(), if is_ready => self.pass_frame().await?,
                Some(approved) = self.script.answers.recv() => self.answer_last(approved).await?,
                _ = tokio::signal::ctrl_c() => self.stop("interrupted").await?,
            }
        }
    }

    /// Sends one frame of the recording or of silence, and plays one.
    async fn pass_frame(&mut self) -> Result<(), Failure> {
        if !self.is_stopped {
            self.send_frame().await?;
        }
        for played in self.playback.play(FRAME_MS) {
            self.last_activity = Instant::now();
            self.report(played).await?;
        }
        self.frames += 1;
        if self.frames.is_multiple_of(FRAMES_PER_REPORT)
            && let Some(played) = self.playback.current()
        {
            self.report(played).await?;
        }
        if self.playback.is_silent() && std::mem::take(&mut self.awaits_farewell) {
            self.send(json!({ "type": "farewell_played" })).await?;
        }
        self.stop_if_over().await
    }

    async fn send_frame(&mut self) -> Result<(), Failure> {
        let Recording { rate, samples } = self.script.recording;
        let length = samples_of(*rate, FRAME_MS);
        let end = (self.sent + length).min(samples.len());
        let mut frame: Vec<u8> =
            samples[self.sent..end].iter().flat_map(|sample| sample.to_le_bytes()).collect();
        frame.resize(length * 2, 0);
        self.sent = end;
        if self.sent == samples.len() && self.deadline.is_none() {
            self.deadline = Some(Instant::now() + self.script.timeout);
        }
        self.socket.send(Message::Binary(Bytes::from(frame))).await.map_err(|error| connection_lost(&error))
    }

    async fn stop_if_over(&mut self) -> Result<(), Failure> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        if self.is_stopped {
            let help = "the server's log has more";
            return match Instant::now() > deadline {
                true => Err(Failure::new("the server does not end the session", help)),
                false => Ok(()),
            };
        }
        let is_open = |question: &ConfirmationPrompt| question.outcome.is_none();
        let is_busy = !self.running.is_empty()
            || !self.playback.is_silent()
            || self.outcome.confirmations.iter().any(is_open)
            || !self.pieces.is_empty();
        let is_over = self.outcome.answered && !is_busy && self.last_activity.elapsed() > QUIET;
        if is_over || Instant::now() > deadline {
            self.stop("stopped").await?;
        }
        Ok(())
    }

    async fn stop(&mut self, reason: &str) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.is_stopped, true) {
            self.outcome.reason = reason.to_owned();
            self.deadline = Some(Instant::now() + STOP_TIMEOUT);
            self.send(json!({ "type": "stop" })).await?;
        }
        Ok(())
    }

    async fn receive(&mut self, text: &str) -> Result<(), Failure> {
        let message = serde_json::from_str(text).map_err(|error| {
            let message = format!("the server sent a message that this client cannot read: {error}");
            Failure::new(message, "use the same version of toolwright on both sides")
        })?;
        self.last_activity = Instant::now();
        match message {
            ServerMessage::Ready { session_id } => self.outcome.session_id = session_id,
            ServerMessage::Transcript { role, text, is_final, interrupted } => {
                self.add_words(role, text, is_final, interrupted);
            }
            ServerMessage::AudioStarted { item } => self.playback.begin(item),
            ServerMessage::AudioEnded { item } => {
                self.playback.complete(&item);
                self.note_answer();
            }
            ServerMessage::Interrupted {} => {
                if let Some(played) = self.playback.drop_unheard() {
                    self.report(played).await?;
                }
            }
            ServerMessage::ToolStarted { call_id, tool } => {
                self.running.insert(call_id);
                (self.script.on_event)(&Event::ToolStarted(tool));
            }
            ServerMessage::ToolFinished { call_id, tool, ok, error } => {
                self.running.remove(&call_id);
                let call = Call { call_id, tool, ok, error };
                (self.script.on_event)(&Event::ToolFinished(call.clone()));
                self.outcome.calls.push(call);
            }
            other => self.receive_control(other).await?,
        }
        Ok(())
    }

    async fn receive_control(&mut self, message: ServerMessage) -> Result<(), Failure> {
        match message {
            ServerMessage::ConfirmationRequested { id, tool, args, preview } => {
                self.ask(ConfirmationPrompt { id, tool, args, preview, outcome: None, by: None }).await?;
            }
            ServerMessage::ConfirmationDecided { id, outcome, by } => {
                let mut questions = self.outcome.confirmations.iter_mut();
                if let Some(question) = questions.find(|question| question.id == id) {
                    (question.outcome, question.by) = (Some(outcome), Some(by));
                }
            }
            ServerMessage::Message { text, data } => {
                let message = text.map(Value::String).or(data).unwrap_or_default();
                (self.script.on_event)(&Event::Message(message.clone()));
                self.outcome.messages.push(message);
            }
            ServerMessage::Timeout { until, seconds, message } => {
                let why = message.unwrap_or_default();
                let text = format!("this client is blocked for {seconds} seconds, until {until}: {why}");
                (self.script.on_event)(&Event::Warning(text.trim_end_matches([' ', ':']).to_owned()));
                self.outcome.blocked_until = Some(until);
            }
            ServerMessage::Ending { farewell } => {
                self.is_stopped = true;
                self.deadline.get_or_insert_with(|| Instant::now() + self.script.timeout + STOP_TIMEOUT);
                self.awaits_farewell = farewell;
            }
            ServerMessage::Ended { reason } => self.outcome.reason = reason,
            ServerMessage::Error { code, message } => {
                (self.script.on_event)(&Event::Warning(format!("{message} ({code})")));
                self.last_error = Some((code, message));
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the speech of the recording was sent, and something was said after it.
    fn note_answer(&mut self) {
        self.outcome.answered |= self.sent > self.speech_end;
    }

    fn add_words(&mut self, role: String, text: String, is_final: bool, interrupted: bool) {
        if !is_final {
            self.pieces.entry(role).or_default().push_str(&text);
            return;
        }
        self.pieces.remove(&role);
        if role == "assistant" {
            self.note_answer();
        }
        let utterance = Utterance { role, text, interrupted };
        (self.script.on_event)(&Event::Said(utterance.clone()));
        self.outcome.transcript.push(utterance);
    }

    /// After a resume, the server repeats the confirmation requests of the session.
    async fn ask(&mut self, question: ConfirmationPrompt) -> Result<(), Failure> {
        let id = question.id.clone();
        if !self.outcome.confirmations.iter().any(|known| known.id == id) {
            (self.script.on_event)(&Event::Question(question.clone()));
            self.outcome.confirmations.push(question);
        }
        match self.script.confirm {
            Confirm::Ask => Ok(()),
            Confirm::Yes => self.confirm(&id, true).await,
            Confirm::No => self.confirm(&id, false).await,
        }
    }

    async fn answer_last(&mut self, approved: bool) -> Result<(), Failure> {
        let mut open = self.outcome.confirmations.iter().filter(|question| question.outcome.is_none());
        match open.next_back().map(|question| question.id.clone()) {
            Some(id) => self.confirm(&id, approved).await,
            None => Ok(()),
        }
    }

    async fn confirm(&mut self, id: &str, approved: bool) -> Result<(), Failure> {
        self.send(json!({ "type": "confirm", "id": id, "approved": approved })).await
    }

    async fn report(&mut self, played: PlaybackPosition) -> Result<(), Failure> {
        self.send(json!({ "type": "played", "item": played.item, "ms": played.ms })).await
    }

    async fn send(&mut self, message: Value) -> Result<(), Failure> {
        self.socket.send(Message::text(message.to_string())).await.map_err(|error| connection_lost(&error))
    }

    /// Handles the close of the connection: after `ended`, or with an error.
    fn closed(&mut self, frame: Option<CloseFrame>) -> Result<(), Failure> {
        let code = frame.as_ref().map_or(1006, |frame| u16::from(frame.code));
        // The words that were being said when the session ended.
        for (role, text) in std::mem::take(&mut self.pieces) {
            let utterance = Utterance { role, text, interrupted: true };
            (self.script.on_event)(&Event::Said(utterance.clone()));
            self.outcome.transcript.push(utterance);
        }
        if code == 1000 {
            return Ok(());
        }
        let why = match (&self.last_error, frame) {
            (Some((code, message)), _) => format!("{message} ({code})"),
            (None, Some(frame)) => frame.reason.to_string(),
            (None, None) => "the connection was lost".to_owned(),
        };
        let help = match code {
            4403 => "wait, or lift the block with `toolwright unblock`",
            4404 | 4410 => "begin a new session: leave out --session",
            4502 => "the server's log has the reason; check `[voice]` in its toolwright.toml",
            _ => "try again; the server's log has more",
        };
        Err(Failure::new(format!("the server closed the session ({code}): {why}"), help))
    }
}
