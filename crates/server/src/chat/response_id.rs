//! The id of a response: its session and its first position in the log, so that responses need no table of their own.

/// The place of a response in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub session: String,
    /// The position before its first event.
    pub position: u64,
}

impl ResponseId {
    pub fn parse(text: &str) -> Option<Self> {
        let (session, position) = text.strip_prefix("resp_")?.rsplit_once('_')?;
        let id = Self { session: session.to_owned(), position: position.parse().ok()? };
        (!session.is_empty()).then_some(id)
    }
}

impl std::fmt::Display for ResponseId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "resp_{}_{}", self.session, self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let id = ResponseId { session: "sess_0a_1".to_owned(), position: 42 };
        assert_eq!(ResponseId::parse(&id.to_string()), Some(id));
        for text in ["", "resp_", "resp_missing", "resp__1", "resp_sess_x", "resp_sess_-1", "sess_1_2"] {
            assert_eq!(ResponseId::parse(text), None, "{text}");
        }
    }
}
