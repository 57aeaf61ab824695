//! Compiles modules to bytecode, in memory. Bytecode never comes from outside the process.
use std::{cell::RefCell, collections::HashMap, rc::Rc};

use rquickjs::{
    Context, Ctx, Error, Module, Runtime, WriteOptions,
    context::intrinsic,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use super::{
    modules::{ERROR_TYPES, resolve},
    text,
};
use crate::program::Source;

/// Bytecode by module path.
pub(crate) type Bytecode = HashMap<String, Vec<u8>>;

/// The modules of a handler, compiled.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    entry: String,
    pub bytecode: Bytecode,
}

impl Compiled {
    pub fn entry(&self) -> &[u8] {
        self.bytecode.get(&self.entry).map_or(&[], Vec::as_slice)
    }
}

const COMPILER_MEMORY_BYTES: usize = 256 << 20;

/// The intrinsics that parsing needs.
type Intrinsics = (intrinsic::Eval, intrinsic::RegExpCompiler);

/// Compiles the engine's own modules.
pub(crate) fn compile_own(modules: &[(&str, &str)]) -> Result<Bytecode, String> {
    let sources = modules.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    let compiler = Compiler::new(sources.collect(), StripLevel::All);
    compiler.compile_from(modules.iter().map(|(path, _)| *path))?;
    Ok(compiler.into_bytecode())
}

/// Compiles the modules of a handler. The error is the first of the entry or of what it imports.
pub(crate) fn compile(modules: &[Source]) -> Result<Compiled, String> {
    let entry = modules.iter().find(|module| module.path == "handler.js").or(modules.first());
    let entry = entry.ok_or("there is no module")?.path.clone();
    let mut sources: HashMap<String, String> =
        modules.iter().map(|module| (module.path.clone(), module.text.clone())).collect();
    sources.insert(ERROR_TYPES.to_owned(), include_str!("../js/error-types.js").into());
    let compiler = Compiler::new(sources, StripLevel::Source);
    compiler.compile_from([&*entry])?;
    for module in modules {
        // An error in a module without static imports only matters to a call that imports it dynamically.
        if !compiler.done.borrow().contains_key(&module.path) {
            let _ = compiler.compile_from([&*module.path]);
        }
    }
    Ok(Compiled { entry, bytecode: compiler.into_bytecode() })
}

/// The parts that are stripped from bytecode. Handlers need line numbers; the engine's own modules do not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StripLevel {
    Source,
    All,
}

/// `SyntaxError: … (handler.js:3)`, with the position from the error's stack.
fn describe(ctx: &Ctx<'_>) -> String {
    let thrown = ctx.catch();
    let Some(error) = thrown.as_object() else { return "the module could not be compiled".to_owned() };
    let name = text::member(error, "name").unwrap_or_else(|| "Error".to_owned());
    let message = text::member(error, "message").unwrap_or_default();
    let stack = text::member(error, "stack").unwrap_or_default();
    let place = stack.lines().next().map(|line| line.trim().trim_start_matches("at ").to_owned());
    match place.filter(|place| !place.is_empty()) {
        Some(place) => format!("{name}: {message} ({place})"),
        None => format!("{name}: {message}"),
    }
}

#[derive(Clone)]
struct Compiler {
    sources: Rc<HashMap<String, String>>,
    done: Rc<RefCell<Bytecode>>,
    strip: StripLevel,
}

impl Compiler {
    fn new(sources: HashMap<String, String>, strip: StripLevel) -> Self {
        Self { sources: Rc::new(sources), done: Rc::default(), strip }
    }

    fn into_bytecode(self) -> Bytecode {
        self.done.take()
    }

    /// Compiles modules and what they import, in a runtime of their own.
    fn compile_from<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        runtime.set_memory_limit(COMPILER_MEMORY_BYTES);
        runtime.set_loader(self.clone(), self.clone());
        let context = Context::custom::<Intrinsics>(&runtime).map_err(|error| error.to_string())?;
        context.with(|ctx| {
            paths.into_iter().try_for_each(|path| match self.compile(&ctx, path) {
                Ok(_) => Ok(()),
                Err(Error::Exception) => Err(describe(&ctx)),
                Err(error) => Err(error.to_string()),
            })
        })
    }

    fn compile<'js>(&self, ctx: &Ctx<'js>, path: &str) -> rquickjs::Result<Module<'js, Declared>> {
        let source = self.sources.get(path).ok_or_else(|| Error::new_loading(path))?;
        let module = Module::declare(ctx.clone(), path, source.as_bytes())?;
        let strip_debug = self.strip == StripLevel::All;
        let options = WriteOptions { strip_source: true, strip_debug, ..WriteOptions::default() };
        let bytes = module.write(options)?;
        self.done.borrow_mut().insert(path.to_owned(), bytes);
        Ok(module)
    }
}

impl Resolver for Compiler {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        resolve(base, name, |path| self.sources.contains_key(path))
    }
}

impl Loader for Compiler {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        self.compile(ctx, name)
    }
}
