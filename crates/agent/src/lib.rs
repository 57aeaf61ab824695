//! Converses with models: the turn loop, the conversation log and the transports to models. Knows nothing of HTTP
//! routes and of HTML.
//!
//! A wire (chat stream, OpenAI's APIs, AG-UI, the terminal) is an encoder of the conversation log:
//!
//! ```ignore
//! let agent = Agent::new(orchestrator, Model::remote(settings)?, options);
//!
//! // Start a turn. It runs in a task of its own, whether or not anyone listens.
//! let turn = agent.start(TurnRequest::message(session, UserMessage::text("msg_1", "Which studio is quiet?"))).await?;
//! let mut events = agent.events(session, turn.start).await?;
//! while let Some(event) = events.next().await? { /* encode it; the stream ends when the turn ends or pauses */ }
//!
//! // After a reload: `agent.running_turn(session)` has the `start` from which the whole turn is read again.
//! // A call that waits for approval: the user's answer continues the turn.
//! let turn = agent.answer(ApprovalAnswer { approval_id, approved: true, .. }).await?;
//! // Stop it: reads are cancelled, writes finish and are recorded.
//! agent.stop(session).await?;
//! // All messages, for a reload.
//! let messages = agent.history(session).await?;
//! ```

mod agent;
mod approval;
mod background_calls;
mod calls;
mod client_results;
mod conversation;
mod error;
mod event;
mod event_stream;
mod fork;
mod history_limit;
mod ids;
mod live_turn;
mod log_writer;
mod message;
mod metrics;
mod model;
mod model_choice;
mod model_step;
mod offline;
mod pending_turns;
mod recovery;
mod request;
mod settings;
mod spans;
mod toolbox;
mod transport;
mod turn;
mod turn_context;
pub mod voice;

pub use agent::{Agent, Turn};
pub use background_calls::{BackgroundCalls, TaskEnds};
pub use error::Error;
pub use event::{
    ConfirmationPart, Event, EventBody, FinishReason, InputPart, ProviderData, ToolCallPart, ToolResultPart,
    TurnError, TurnOutcome, Usage, UserMessage,
};
pub use event_stream::EventStream;
pub use fork::RunEnd;
pub use message::{AssistantMessage, Decision, Message, Part, Step, ToolPart};
pub use metrics::{AgentMetrics, FIRST_TOKEN_BOUNDS_MS, series};
pub use model::{Model, ModelError, ModelErrorKind};
pub use model_choice::AgentSection;
pub use request::{ApprovalAnswer, ClientResult, ClientTool, ToolAccess, TurnInput, TurnRequest};
pub use settings::{AgentOptions, ModelSettings, Timeouts, ToolChoice};
pub use spans::{AgentObserver, FinishedRequest, FinishedTurn};
pub use transport::RemoteModel;
pub use turn_context::TurnContext;
