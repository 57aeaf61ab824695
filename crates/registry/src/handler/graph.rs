//! The modules that a handler reaches, each read and parsed once.

use super::module::{Module, Request};
use super::parse::parse;
use super::specifier::{Target, resolve};
use super::{FileProblem, HANDLER, Siblings};
use crate::problem::Problem;
use std::collections::{BTreeMap, VecDeque};

const MOST_MODULES: usize = 100;

pub(super) struct Graph {
    pub modules: BTreeMap<String, Module>,
    pub sources: BTreeMap<String, String>,
    pub problems: Vec<FileProblem>,
}

pub(super) fn load(source: &str, siblings: &dyn Siblings) -> Graph {
    let mut loader = Loader {
        siblings,
        graph: Graph { modules: BTreeMap::new(), sources: BTreeMap::new(), problems: Vec::new() },
        unreadable: BTreeMap::new(),
        waiting: VecDeque::new(),
        is_full: false,
    };
    loader.add(HANDLER, source);
    while let Some(path) = loader.waiting.pop_front() {
        // Out of the map while it is worked on: the text of its siblings goes into the same one.
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
        let mut module = parse(source);
        let mut problems = std::mem::take(&mut module.problems);
        // Known before its imports are followed: a module may import itself.
        self.graph.modules.insert(path.to_owned(), Module::default());
        for request in &mut module.requests {
            match self.follow(path, request) {
                Ok(target) => request.target = target,
                Err(problem) => problems.extend(problem),
            }
        }
        let file = || path.to_owned();
        self.graph.problems.extend(problems.into_iter().map(|problem| FileProblem { file: file(), problem }));
        self.graph.modules.insert(path.to_owned(), module);
    }

    /// `Err(None)`: refused, and said so already.
    fn follow(&mut self, importer: &str, request: &Request) -> Result<Target, Option<Problem>> {
        let target = resolve(importer, &request.specifier, &request.span).map_err(Some)?;
        if let Some(span) = &request.extra {
            return Err(Some(
                Problem::error(
                    "handler-import-forbidden",
                    span.clone(),
                    "import attributes and phases are not available in handlers",
                )
                .with_help("import a plain `.js` module; data can be `export default { … }` in one"),
            ));
        }
        if let Target::Sibling(path) = &target {
            self.reach(path, request)?;
        }
        Ok(target)
    }

    fn reach(&mut self, path: &str, request: &Request) -> Result<(), Option<Problem>> {
        let missing = |reason: &str| {
            let message = format!("`{path}` cannot be read: {reason}");
            Some(Problem::error("handler-import-missing", request.span.clone(), message))
        };
        if self.graph.modules.contains_key(path) || self.waiting.iter().any(|known| known == path) {
            return Ok(());
        }
        if let Some(reason) = self.unreadable.get(path) {
            return Err(missing(reason));
        }
        if self.graph.modules.len() + self.waiting.len() > MOST_MODULES {
            return Err(self.refuse_more(request));
        }
        match self.siblings.read(path) {
            Ok(source) => {
                self.waiting.push_back(path.to_owned());
                self.graph.sources.insert(path.to_owned(), source);
                Ok(())
            }
            Err(reason) => {
                let problem = missing(&reason);
                self.unreadable.insert(path.to_owned(), reason);
                Err(problem)
            }
        }
    }

    fn refuse_more(&mut self, request: &Request) -> Option<Problem> {
        if std::mem::replace(&mut self.is_full, true) {
            return None;
        }
        let message = format!("the handler imports more than {MOST_MODULES} modules");
        Some(
            Problem::error("handler-too-many-modules", request.span.clone(), message)
                .with_help("bundle them into fewer files"),
        )
    }
}
