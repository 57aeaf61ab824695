//! The frame of every page: the user, the toolset and the model, the number of pending confirmation requests.

use toolwright_console::format::shorten;
use toolwright_console::{Layout, Page};
use toolwright_orchestrator::store::{PendingQuery, PendingScope};

use super::knowledge_base_page;
use crate::problem::Problem;
use crate::request::ApiRequest;

/// The most characters of the name of a user.
const MAX_USER: usize = 60;
/// More are shown as `99+`.
const MAX_COUNTED: usize = 100;

/// The frame of a page with this title.
pub(crate) async fn layout(
    request: &ApiRequest<'_>,
    page: Page,
    title: impl Into<String>,
) -> Result<Layout, Problem> {
    let app = request.app;
    let model = app.options.agent.as_ref().map_or("no agent", |agent| agent.model().name());
    Ok(Layout {
        title: title.into(),
        page,
        user: shorten(&request.principal()?.id, MAX_USER),
        is_admin: request.is_admin(),
        is_signed_in: app.auth.is_signed_in(&request.head.headers),
        toolset: app.orchestrator.current().toolset().version.clone(),
        model: model.to_owned(),
        pending: count_pending(request).await?,
        may_search: knowledge_base_page::may_search(request)?,
        csrf: app.auth.csrf_token(&request.head.headers)?,
        scripts: &[],
    })
}

/// How many confirmation requests this principal could answer.
pub(super) async fn count_pending(request: &ApiRequest<'_>) -> Result<usize, Problem> {
    let key = request.principal()?.key();
    let scope = if request.is_admin() { PendingScope::All } else { PendingScope::Principal(&key) };
    let query = PendingQuery { scope, after: None, limit: MAX_COUNTED };
    let page = request.app.orchestrator.pending_page(query).await?;
    // Records of earlier versions do not say whose they are.
    Ok(page.requests.iter().filter(|pending| request.is_admin() || pending.principal == key).count())
}
