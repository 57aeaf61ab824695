//! `DELETE /v1/blocks`: lifts the block of a client.

use serde_json::json;
use toolwright_contract::Principal;

use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

pub(crate) async fn delete(request: ApiRequest<'_>) -> ApiResult {
    let [user, org, client] = request.query(["user", "org", "clientId"])?;
    let user =
        user.ok_or_else(|| Problem::new(Kind::BAD_REQUEST, "Name the client's principal with `?user=`."))?;
    let client = client.unwrap_or_else(|| user.clone());
    let org = org.map(|org| org.into_owned());
    let principal = Principal { id: user.into_owned(), org, roles: Vec::new() };
    let was_blocked = request.app.orchestrator.unblock(&principal, &client).await?;
    Ok(json::response(&json!({ "clientId": client, "wasBlocked": was_blocked })))
}
