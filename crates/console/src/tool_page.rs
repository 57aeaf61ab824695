//! A tool's page: try it, its documentation, its parameters, and what models see of it.

use askama::Template;

use crate::call_list::CallRow;
use crate::format::{self, url_part};
use crate::layout::Layout;
use crate::markdown::Markdown;
use crate::parameters::ParameterRow;
use crate::parts::{Chip, Choice, Code, CopyButton, CsrfField, Notice};
use crate::schema_form::Field;
use crate::tool_list::{category_chip, tool_path};

#[derive(Debug, Template)]
#[template(path = "tool.html")]
pub struct ToolPage {
    pub layout: Layout,
    pub id: String,
    pub summary: String,
    pub category: String,
    /// Effects, modes, budget, version and the rest.
    pub properties: Vec<Chip>,
    pub tab: Tab,
    pub content: TabContent,
}

/// A part of the page, with its own address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Try,
    Documentation,
    Parameters,
    Models,
}

impl Tab {
    pub const ALL: [Self; 4] = [Self::Try, Self::Documentation, Self::Parameters, Self::Models];

    /// The word of the tab in the address.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Try => "try",
            Self::Documentation => "documentation",
            Self::Parameters => "parameters",
            Self::Models => "models",
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Try => "Try it",
            Self::Documentation => "Documentation",
            Self::Parameters => "Parameters",
            Self::Models => "What models see",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tab| tab.word() == word)
    }
}

#[derive(Debug)]
pub enum TabContent {
    Try(Box<TryContent>),
    Documentation {
        text: Markdown,
        /// The address of the whole text, if it was cut.
        whole: Option<String>,
    },
    Parameters {
        rows: Vec<ParameterRow>,
        schema: Code,
        output: Option<Code>,
    },
    Models {
        prompt_line: Code,
        views: Vec<ProviderView>,
    },
}

/// The form, and the result of the last call.
#[derive(Debug)]
pub struct TryContent {
    pub form: Field,
    pub modes: Vec<Choice>,
    /// All arguments as JSON.
    pub json: String,
    pub json_error: Option<String>,
    pub notices: Vec<Notice>,
    pub result: Option<TryResult>,
    /// The reason why calls cannot be saved as tests; `None` if they can.
    pub cannot_save: Option<String>,
    /// The last calls of the tool that the user may see.
    pub calls: Vec<CallRow>,
}

/// The answer of a call.
#[derive(Debug)]
pub struct TryResult {
    pub outcome: Chip,
    pub duration_ms: u64,
    pub execution_id: String,
    /// The page of the call.
    pub href: String,
    pub envelope: Code,
    /// `None` if it is too long to be copied.
    pub curl: Option<String>,
    /// The call, for a test of the tool.
    pub args_json: String,
    pub mode: String,
    pub expect_json: String,
    pub is_waiting: bool,
}

/// A provider's form of the tool.
#[derive(Debug)]
pub struct ProviderView {
    pub title: String,
    pub declaration: Code,
    pub losses: Vec<LossRow>,
}

/// A constraint that a provider's form cannot express.
#[derive(Debug)]
pub struct LossRow {
    pub path: String,
    pub note: String,
}

impl ToolPage {
    fn tabs(&self) -> [Tab; 4] {
        Tab::ALL
    }

    fn is_current(&self, tab: &Tab) -> bool {
        self.tab == *tab
    }

    fn tab_path(&self, tab: &Tab) -> String {
        match tab {
            Tab::Try => tool_path(&self.id),
            other => format!("{}?tab={}", tool_path(&self.id), other.word()),
        }
    }

    fn calls_path(&self) -> String {
        format!("/calls?tool={}", url_part(&self.id))
    }

    fn category_chip(&self) -> Chip {
        category_chip(&self.category)
    }

    fn path(&self) -> String {
        tool_path(&self.id)
    }

    fn csrf(&self) -> CsrfField {
        CsrfField(self.layout.csrf.clone())
    }
}

impl TryResult {
    fn copy_curl(&self) -> Option<CopyButton> {
        self.curl.as_ref().map(|curl| CopyButton::new("Copy as curl", curl))
    }

    fn duration(&self) -> String {
        format::duration(self.duration_ms as f64)
    }
}
