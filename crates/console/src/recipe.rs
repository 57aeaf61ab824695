//! How to connect other programs: complete commands and settings, with the server's real address.

use serde_json::{Value, json};

use crate::format;
use crate::parts::Code;

/// Stands for the reader's key; a script of the page replaces it, so that the key never leaves the browser.
pub const KEY_PLACEHOLDER: &str = "YOUR_KEY";

/// How to connect one program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The id of the tab, for its address.
    pub id: &'static str,
    pub name: &'static str,
    /// Says where to put the text.
    pub hint: &'static str,
    pub code: Code,
}

/// An example call.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleCall<'a> {
    pub tool: &'a str,
    pub args: &'a Value,
}

/// The recipes for a server at this address, for example `http://127.0.0.1:7300`.
pub fn recipes(base: &str, needs_key: bool, example: Option<&ExampleCall<'_>>) -> Vec<Recipe> {
    let recipe = |id, name, hint, text| Recipe { id, name, hint, code: Code::new(name, text) };
    vec![
        recipe("curl", "curl", "In a terminal", curl(base, needs_key, example)),
        recipe("claude", "Claude", "In a terminal; then /mcp in Claude Code", claude(base, needs_key)),
        recipe("vscode", "VS Code", "In .vscode/mcp.json", vscode(base, needs_key)),
        recipe("cursor", "Cursor", "In .cursor/mcp.json", cursor(base, needs_key)),
        recipe(
            "openwebui",
            "Open WebUI",
            "Settings, Connections, add an OpenAI connection; it always needs a key",
            open_webui(base),
        ),
        recipe("usechat", "useChat", "In a React component", use_chat(base, needs_key)),
        recipe("python", "Python", "pip install openai; it always needs a key", python(base)),
    ]
}

/// A call of a tool by curl.
pub fn curl_call(base: &str, needs_key: bool, tool: &str, body: &Value) -> String {
    let header = if needs_key {
        format!(" \\\n  -H 'authorization: Bearer {KEY_PLACEHOLDER}'")
    } else {
        String::new()
    };
    let path = format!("{base}/v1/tools/{}/call", format::url_part(tool));
    format!(
        "curl -s {}{header} \\\n  -H 'content-type: application/json' \\\n  -d {}",
        shell_quote(&path),
        shell_quote(&body.to_string())
    )
}

fn curl(base: &str, needs_key: bool, example: Option<&ExampleCall<'_>>) -> String {
    match example {
        Some(ExampleCall { tool, args }) => curl_call(base, needs_key, tool, &json!({ "args": args })),
        None if needs_key => format!("curl -s {base}/v1/tools -H 'authorization: Bearer {KEY_PLACEHOLDER}'"),
        None => format!("curl -s {base}/v1/tools"),
    }
}

fn claude(base: &str, needs_key: bool) -> String {
    let header = if needs_key {
        format!(" \\\n  --header 'Authorization: Bearer {KEY_PLACEHOLDER}'")
    } else {
        String::new()
    };
    format!("claude mcp add --transport http toolwright {base}/mcp{header}")
}

fn vscode(base: &str, needs_key: bool) -> String {
    let mut server = json!({ "type": "http", "url": format!("{base}/mcp") });
    add_headers(&mut server, needs_key);
    format::pretty(&json!({ "servers": { "toolwright": server } }))
}

fn cursor(base: &str, needs_key: bool) -> String {
    let mut server = json!({ "url": format!("{base}/mcp") });
    add_headers(&mut server, needs_key);
    format::pretty(&json!({ "mcpServers": { "toolwright": server } }))
}

fn add_headers(server: &mut Value, needs_key: bool) {
    if needs_key {
        server["headers"] = json!({ "Authorization": format!("Bearer {KEY_PLACEHOLDER}") });
    }
}

fn open_webui(base: &str) -> String {
    format!("URL    {base}/v1\nKey    {KEY_PLACEHOLDER}\nModel  toolwright")
}

fn use_chat(base: &str, needs_key: bool) -> String {
    let headers = if needs_key {
        format!("\n    headers: {{ authorization: \"Bearer {KEY_PLACEHOLDER}\" }},")
    } else {
        String::new()
    };
    format!(
        "import {{ useChat }} from \"@ai-sdk/react\";\nimport {{ DefaultChatTransport }} from \"ai\";\n\n\
         const {{ messages, sendMessage }} = useChat({{\n  transport: new DefaultChatTransport({{\n    \
         api: \"{base}/api/chat\",{headers}\n  }}),\n}});"
    )
}

fn python(base: &str) -> String {
    format!(
        "from openai import OpenAI\n\nclient = OpenAI(base_url=\"{base}/v1\", api_key=\"{KEY_PLACEHOLDER}\")\n\
         answer = client.responses.create(model=\"toolwright\", input=\"What can you do?\")\n\
         print(answer.output_text)"
    )
}

/// A text as one word of a POSIX shell.
fn shell_quote(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_command_passes_its_arguments_unchanged() {
        let body = json!({ "args": { "text": "it's $HOME `x`" } });
        let expected = "curl -s http://127.0.0.1:7300/v1/tools/a%2Fb/call \\\n  \
            -H 'authorization: Bearer YOUR_KEY' \\\n  -H 'content-type: application/json' \\\n  \
            -d '{\"args\":{\"text\":\"it'\\''s $HOME `x`\"}}'";
        assert_eq!(curl_call("http://127.0.0.1:7300", true, "a/b", &body), expected);
    }

    #[test]
    fn recipes_have_the_address_and_a_key_only_where_one_is_needed() {
        let open = recipes("http://127.0.0.1:7300", false, None);
        assert!(open.iter().all(|recipe| recipe.code.text.contains("127.0.0.1:7300")));
        let with_key = open.iter().filter(|recipe| recipe.code.text.contains(KEY_PLACEHOLDER));
        assert_eq!(with_key.map(|recipe| recipe.id).collect::<Vec<_>>(), ["openwebui", "python"]);
        let closed = recipes("https://tools.example", true, None);
        assert!(closed.iter().all(|recipe| recipe.code.text.contains(KEY_PLACEHOLDER)));
    }
}
