use super::*;

/// JSON consumers do not see the source beside a message, so it names the field, file, keyword or tool.
#[test]
fn every_message_has_a_name_in_backquotes() {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/thirty-mistakes");
    let options =
        Options { out: tools.join("tool_registry.json"), tools, formats: Formats::default(), cache: None };
    let compilation = compile(options, &Progress::default()).unwrap();
    assert!(compilation.diagnostics.len() > 30 && !compilation.is_ok());
    for Diagnostic { code, message, .. } in &compilation.diagnostics {
        let mut quoted = message.split('`').skip(1).step_by(2);
        assert!(quoted.any(|name| name.contains(char::is_alphanumeric)), "{code}: {message}");
    }
}
