//! The modules that a handler imports, directly or not, each read and parsed once.

use super::module::{Module, Request};
use super::parse::parse;
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
            match self.follow(path, request) {
                Ok(target) => request.target = target,
                Err(diagnostic) => self.graph.diagnostics.extend(diagnostic.map(|diagnostic| *diagnostic)),
            }
        }
        self.graph.modules.insert(path.to_owned(), module);
    }

    /// `Err(None)`: rejected, and reported already.
    fn follow(&mut self, importer: &str, request: &Request) -> Result<Target, Option<Box<DiagnosticDraft>>> {
        let target = resolve(importer, &request.specifier, &request.span).map_err(Some)?;
        if let Some(span) = &request.attributes {
            let message = format!(
                "the import of `{}` has attributes or a phase, which handlers cannot use",
                excerpt(&request.specifier)
            );
            let help = "import a plain `.js` module; data can be `export default { … }` in one";
            let draft = error("handler-import-forbidden", importer, span.clone(), message);
            return Err(Some(draft.with_help(help).into()));
        }
        if let Target::Sibling(path) = &target {
            self.read_sibling(importer, path, request)?;
        }
        Ok(target)
    }

    fn read_sibling(
        &mut self,
        importer: &str,
        path: &str,
        request: &Request,
    ) -> Result<(), Option<Box<DiagnosticDraft>>> {
        let missing = |reason: &str| {
            let message = format!("the import `{path}` cannot be read: {reason}");
            let help = "correct the path, or add the file to the tool's directory";
            Some(
                error("handler-import-missing", importer, request.span.clone(), message)
                    .with_help(help)
                    .into(),
            )
        };
        if self.graph.modules.contains_key(path) || self.waiting.iter().any(|known| known == path) {
            return Ok(());
        }
        if let Some(reason) = self.unreadable.get(path) {
            return Err(missing(reason));
        }
        if self.graph.modules.len() + self.waiting.len() > MAX_MODULES {
            return Err(self.too_many_modules(importer, request));
        }
        match self.siblings.read(path) {
            Ok(source) => {
                self.waiting.push_back(path.to_owned());
                self.graph.sources.insert(path.to_owned(), source);
                Ok(())
            }
            Err(reason) => {
                let diagnostic = missing(&reason);
                self.unreadable.insert(path.to_owned(), reason);
                Err(diagnostic)
            }
        }
    }

    fn too_many_modules(&mut self, importer: &str, request: &Request) -> Option<Box<DiagnosticDraft>> {
        if std::mem::replace(&mut self.is_full, true) {
            return None;
        }
        let message = format!("`{HANDLER}` imports more than {MAX_MODULES} modules");
        let draft = error("handler-too-many-modules", importer, request.span.clone(), message);
        Some(draft.with_help("bundle them into fewer files").into())
    }
}
