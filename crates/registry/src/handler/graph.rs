//! The modules that a handler imports, directly or not, each read and parsed once.

use super::module::{Module, Request};
use super::parse_module::parse;
use super::specifier::{Target, resolve};
use super::{HANDLER, Siblings, error};
use crate::diagnostic::DiagnosticDraft;
use crate::excerpt::excerpt;
use std::collections::{BTreeMap, VecDeque};

const MAX_MODULES: usize = 100;

pub(super) struct Graph {
    pub modules: BTreeMap<String, Module>,
    pub sources: BTreeMap<String, String>,
    pub diagnostics: Vec<DiagnosticDraft>,
}

pub(super) fn load(source: &str, siblings: &dyn Siblings) -> Graph {
    let mut loader = Loader {
        siblings,
        graph: Graph { modules: BTreeMap::new(), sources: BTreeMap::new(), diagnostics: Vec::new() },
        unreadable: BTreeMap::new(),
        waiting: VecDeque::new(),
        is_full: false,
    };
    loader.add(HANDLER, source);
    while let Some(path) = loader.waiting.pop_front() {
        // Removed during the parse: `add` inserts the sources of imported modules into the same map.
        if let Some(text) = loader.graph.sources.remove(&path) {
            loader.add(&path, &text);
            loader.graph.sources.insert(path, text);
        }
    }
    loader.graph
}

struct Loader<'s> {
    siblings: &'s dyn Siblings,
    graph: Graph,
    unreadable: BTreeMap<String, String>,
    waiting: VecDeque<String>,
    is_full: bool,
}

impl Loader<'_> {
    fn add(&mut self, path: &str, source: &str) {
        let mut module = parse(path, source);
        self.graph.diagnostics.append(&mut module.diagnostics);
        // Inserted before its imports are followed: a module may import itself.
        self.graph.modules.insert(path.to_owned(), Module::default());
        for request in &mut module.requests {
            if let Some(target) = self.follow(path, request) {
                request.target = target;
            }
        }
        self.graph.modules.insert(path.to_owned(), module);
    }

    /// Reports an import that cannot be used.
    fn reject(&mut self, draft: DiagnosticDraft, help: &str) {
        self.graph.diagnostics.push(draft.with_help(help));
    }

    fn follow(&mut self, importer: &str, request: &Request) -> Option<Target> {
        let resolved = resolve(importer, &request.specifier, &request.span);
        let target = resolved.map_err(|draft| self.graph.diagnostics.push(*draft)).ok()?;
        if let Some(span) = &request.attributes {
            let message = format!(
                "the import of `{}` has attributes or a phase, which handlers cannot use",
                excerpt(&request.specifier)
            );
            let draft = error("handler-import-forbidden", importer, span.clone(), message);
            self.reject(draft, "import a plain `.js` module; data can be `export default { … }` in one");
            return None;
        }
        if let Target::Sibling(path) = &target {
            self.read_sibling(importer, path, request)?;
        }
        Some(target)
    }

    /// Reads a module that is not known yet. `None` if it cannot be read, which is reported.
    fn read_sibling(&mut self, importer: &str, path: &str, request: &Request) -> Option<()> {
        if self.graph.modules.contains_key(path) || self.waiting.iter().any(|known| known == path) {
            return Some(());
        }
        let is_unread = !self.unreadable.contains_key(path);
        if is_unread && self.graph.modules.len() + self.waiting.len() > MAX_MODULES {
            if !std::mem::replace(&mut self.is_full, true) {
                let message = format!("`{HANDLER}` imports more than {MAX_MODULES} modules");
                let draft = error("handler-too-many-modules", importer, request.span.clone(), message);
                self.reject(draft, "bundle them into fewer files");
            }
            return None;
        }
        let read = match self.unreadable.get(path) {
            Some(reason) => Err(reason.clone()),
            None => self.siblings.read(path),
        };
        match read {
            Ok(source) => {
                self.waiting.push_back(path.to_owned());
                self.graph.sources.insert(path.to_owned(), source);
                Some(())
            }
            Err(reason) => {
                let message = format!("the import `{path}` cannot be read: {reason}");
                let draft = error("handler-import-missing", importer, request.span.clone(), message);
                self.reject(draft, "correct the path, or add the file to the tool's directory");
                self.unreadable.insert(path.to_owned(), reason);
                None
            }
        }
    }
}
