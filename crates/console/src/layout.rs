//! The frame of all pages: the navigation, the user, the toolset and the model.

use crate::asset::asset_url;

/// The pages of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    Home,
    Chat,
    Voice,
    Tools,
    Prompt,
    Toolsets,
    KnowledgeBase,
    Calls,
    Confirmations,
    Sessions,
    Metrics,
    Audit,
}

/// One group of the navigation; the first has no heading.
#[derive(Debug)]
pub struct PageGroup {
    pub heading: &'static str,
    pub pages: &'static [Page],
}

const GROUPS: &[PageGroup] = &[
    PageGroup { heading: "", pages: &[Page::Home, Page::Chat, Page::Voice] },
    PageGroup { heading: "Tools", pages: &[Page::Tools, Page::Prompt, Page::Toolsets, Page::KnowledgeBase] },
    PageGroup {
        heading: "Activity",
        pages: &[Page::Calls, Page::Confirmations, Page::Sessions, Page::Metrics, Page::Audit],
    },
];

impl Page {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Home => "Home",
            Self::Chat => "Chat",
            Self::Voice => "Voice",
            Self::Tools => "Tools",
            Self::Prompt => "Prompt",
            Self::Toolsets => "Toolsets",
            Self::KnowledgeBase => "Knowledge base",
            Self::Calls => "Calls",
            Self::Confirmations => "Confirmations",
            Self::Sessions => "Sessions",
            Self::Metrics => "Metrics",
            Self::Audit => "Audit",
        }
    }

    pub const fn path(self) -> &'static str {
        match self {
            Self::Home => "/",
            Self::Chat => "/chat",
            Self::Voice => "/talk",
            Self::Tools => "/tools",
            Self::Prompt => "/prompt",
            Self::Toolsets => "/toolsets",
            Self::KnowledgeBase => "/kb",
            Self::Calls => "/calls",
            Self::Confirmations => "/confirmations",
            Self::Sessions => "/sessions",
            Self::Metrics => "/usage",
            Self::Audit => "/audit",
        }
    }

    /// Whether only admins see it.
    pub const fn needs_admin(self) -> bool {
        matches!(self, Self::Metrics | Self::Audit | Self::Toolsets)
    }

    /// The path data of its icon, on a field of 16 by 16.
    pub(crate) const fn icon(self) -> &'static str {
        match self {
            Self::Home => "M2.5 7 8 2.5 13.5 7v6.5h-4V10h-3v3.5h-4z",
            Self::Chat => "M2.5 3.5h11V11H7l-3 2.5V11H2.5z",
            Self::Voice => {
                "M8 2a2 2 0 0 1 2 2v4a2 2 0 0 1-4 0V4a2 2 0 0 1 2-2zM3.500 8a4.500 4.500 0 0 0 9 0M8 12.500V14"
            }
            Self::Tools => "M9.5 3.500a3 3 0 0 0 3.8 3.800l-6.6 6.600a1.9 1.9 0 0 1-2.7-2.700l6.6-6.600z",
            Self::Prompt => "m3 5 3 3-3 3M8 11.500h5",
            Self::Toolsets => "m8 2 6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3",
            Self::KnowledgeBase => "M3 2.500h8a2 2 0 0 1 2 2v9H5a2 2 0 0 1-2-2zM3 11.500a2 2 0 0 1 2-2h8",
            Self::Calls => "M2 4h12M2 8h8M2 12h10",
            Self::Confirmations => {
                "M8 1.8 13.2 4v4c0 3-2.2 5.2-5.2 6.200C5 13.2 2.8 11 2.8 8V4zM6 8l1.5 1.500L10.2 6.5"
            }
            Self::Sessions => {
                "M8 3a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM3 13.500c.6-2.7 2.6-4 5-4s4.4 1.3 5 4"
            }
            Self::Metrics => "M2.5 13.500h11M4.5 11V8M8 11V4M11.5 11V6.5",
            Self::Audit => "M4 2.500h5.500L12 5v8.500H4zM6 7.500h4M6 10h4",
        }
    }
}

/// The frame of a page.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The name of the page, for the browser's title.
    pub title: String,
    pub page: Page,
    /// The console's user.
    pub user: String,
    pub is_admin: bool,
    /// The user has signed in, and can sign out.
    pub is_signed_in: bool,
    /// The version of the current toolset.
    pub toolset: String,
    /// The model that answers in chat.
    pub model: String,
    /// Confirmation requests that wait for an answer of this user; more than 99 are shown as such.
    pub pending: usize,
    /// Must come with every form and every request of a script that changes something.
    pub csrf: String,
    /// Whether this user may search the knowledge base.
    pub may_search: bool,
    /// Scripts of the page, besides those of every page.
    pub scripts: &'static [&'static str],
}

impl Layout {
    pub(crate) fn groups(&self) -> &'static [PageGroup] {
        GROUPS
    }

    pub(crate) fn is_listed(&self, page: &Page) -> bool {
        (self.is_admin || !page.needs_admin()) && (self.may_search || *page != Page::KnowledgeBase)
    }

    pub(crate) fn is_current(&self, page: &Page) -> bool {
        self.page == *page
    }

    pub(crate) fn badge(&self, page: &Page) -> Option<String> {
        let is_shown = *page == Page::Confirmations && self.pending > 0;
        is_shown.then(|| if self.pending > 99 { "99+".to_owned() } else { self.pending.to_string() })
    }

    pub(crate) fn asset(&self, name: &str) -> String {
        asset_url(name)
    }
}
