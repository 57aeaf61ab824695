//! Whom `toolwright unblock` lets in again.

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
pub struct Unblock {
    /// Whose client it is: the id of the principal
    pub user: String,
    /// The client's id [default: the principal's]; `terminal` for `toolwright call`
    #[arg(long, value_name = "ID")]
    pub client: Option<String>,
    /// The principal's org
    #[arg(long)]
    pub org: Option<String>,
}
