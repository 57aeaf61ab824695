//! `POST /api/chat`: the request that `useChat` sends. It has the whole conversation in it; only its last message is
//! read, because the conversation is stored here.

use serde::Deserialize;
use serde_json::Value;
use toolwright_agent::{InputPart, Message, UserMessage};

use super::confirmation_answers::Answer;
use super::transcript::shortened;
use crate::problem::{Kind, Problem};

/// Applications may add fields of their own.
#[derive(Debug, Deserialize)]
pub(super) struct ChatBody {
    id: Option<String>,
    #[serde(default)]
    messages: Vec<Value>,
    /// The last message, from applications that send no others.
    message: Option<Value>,
    trigger: Option<String>,
    /// The id of the message to regenerate, of the edited one, or of the one with the answers.
    #[serde(rename = "messageId")]
    message_id: Option<String>,
    /// Who the client is, for blocks, as in `POST /v1/sessions`.
    #[serde(rename = "clientId")]
    pub client_id: Option<String>,
}

/// The action that a request asks for.
#[derive(Debug)]
pub(super) enum ChatInput {
    Message(UserMessage),
    Answers(Vec<Answer>),
}

impl ChatBody {
    pub fn id(&self) -> Result<&str, Problem> {
        self.id.as_deref().ok_or_else(|| bad_request("`id` is missing: the id of the chat."))
    }

    pub fn input(&self) -> Result<ChatInput, Problem> {
        let last = self.message.as_ref().or(self.messages.last());
        let last = last.ok_or_else(|| bad_request("`messages` is empty: send at least one message."))?;
        match last["role"].as_str() {
            Some("user") => Ok(ChatInput::Message(user_message(last)?)),
            Some("assistant") => answers(last).map(ChatInput::Answers),
            _ => Err(bad_request(
                "The last message must have the role `user`, or `assistant` with answers to approvals.",
            )),
        }
    }

    /// Whether the message may be a new version of one that is known.
    pub fn may_be_version(&self) -> bool {
        self.message_id.is_some() || self.is_anew()
    }

    fn is_anew(&self) -> bool {
        self.trigger.as_deref() == Some("regenerate-message")
    }

    /// A message that was edited, or whose answer is to be regenerated, is a new version: it replaces the previous one,
    /// and gets an id of its own.
    pub fn version(&self, mut message: UserMessage, history: &[Message]) -> Version {
        let root = root_of(&message.id).to_owned();
        let users = history.iter().rev().filter_map(|message| match message {
            Message::User(user) => Some(user),
            _ => None,
        });
        let known = users.into_iter().find(|user| root_of(&user.id) == root);
        let Some(known) = known.filter(|known| self.is_anew() || known.parts != message.parts) else {
            // Unknown, or the same again.
            message.id = known.map_or(message.id, |known| known.id.clone());
            return Version { message, replaces: None };
        };
        let number = known.id.rsplit_once(VERSION_SIGN).and_then(|(_, number)| number.parse::<u64>().ok());
        message.id = format!("{root}{VERSION_SIGN}{}", number.unwrap_or(1) + 1);
        Version { message, replaces: Some(known.id.clone()) }
    }
}

/// A message, and the id of the one that it replaces.
#[derive(Debug, PartialEq)]
pub(super) struct Version {
    pub message: UserMessage,
    pub replaces: Option<String>,
}

/// Between the id of a message and the number of its version.
const VERSION_SIGN: char = '~';

fn root_of(id: &str) -> &str {
    id.split_once(VERSION_SIGN).map_or(id, |(root, _)| root)
}

fn user_message(message: &Value) -> Result<UserMessage, Problem> {
    let id = message["id"].as_str().ok_or_else(|| bad_request("The last message has no `id`."))?;
    let parts = message["parts"].as_array().ok_or_else(|| bad_request("The last message has no `parts`."))?;
    let parts = parts.iter().map(input_part).collect::<Result<_, _>>()?;
    Ok(UserMessage { id: id.to_owned(), parts })
}

fn input_part(part: &Value) -> Result<InputPart, Problem> {
    let kind = part["type"].as_str().unwrap_or_default();
    match (kind, part["text"].as_str(), part["url"].as_str()) {
        ("text", Some(text), _) => Ok(InputPart::Text { text: text.to_owned() }),
        ("file", _, Some(url))
            if part["mediaType"].as_str().is_some_and(|media| media.starts_with("image/")) =>
        {
            Ok(InputPart::Image { url: url.to_owned() })
        }
        ("file", _, Some(_)) => {
            Err(bad_request("Only pictures can be attached: files with a media type `image/…`."))
        }
        ("text" | "file", ..) => Err(bad_request(format!("A part of type `{kind}` lacks its content."))),
        _ => Err(bad_request(format!(
            "Parts of type `{}` are not supported in a message of the user. Send `text`, or `file` with a picture.",
            shortened(kind)
        ))),
    }
}

/// The answers in an assistant message: its parts in state `approval-responded`.
fn answers(message: &Value) -> Result<Vec<Answer>, Problem> {
    let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let answered = parts.iter().filter(|part| part["state"] == "approval-responded");
    let answers: Vec<Answer> = answered.filter_map(answer).collect();
    if answers.is_empty() {
        return Err(bad_request(
            "The last message is the assistant's, and answers no approval. Send one of the user.",
        ));
    }
    Ok(answers)
}

fn answer(part: &Value) -> Option<Answer> {
    Some(Answer {
        approval_id: part["approval"]["id"].as_str()?.to_owned(),
        approved: part["approval"]["approved"].as_bool()?,
        reason: part["approval"]["reason"].as_str().map(str::to_owned),
        // The AI SDK has no form for edited arguments; this field is our own.
        args: part["approval"].get("args").filter(|args| !args.is_null()).cloned(),
        claimed_call: Some((part["toolCallId"].as_str()?.to_owned(), part["input"].clone())),
    })
}

fn bad_request(detail: impl Into<String>) -> Problem {
    Problem::new(Kind::BAD_REQUEST, detail)
}
