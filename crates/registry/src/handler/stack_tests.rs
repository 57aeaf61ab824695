use super::*;

const NESTINGS: [(&str, &str, &str); 46] = [
    ("(", "a", ")"),
    ("[", "a", "]"),
    ("{", "a", "}"),
    ("!", "a", ""),
    ("- ", "a", ""),
    ("typeof ", "a", ""),
    ("a=>", "a", ""),
    ("a?a:", "a", ""),
    ("a=", "a", ""),
    ("a**", "a", ""),
    ("a+", "a", ""),
    ("", "a", ".a"),
    ("", "a", "()"),
    ("if(a)", "a", ""),
    ("if(a)a;else ", "a", ""),
    ("new ", "a", ""),
    ("await ", "a", ""),
    ("`${", "a", "}`"),
    ("(function(){", "a", "})"),
    ("({a:", "a", "})"),
    ("(class extends ", "a", "{})"),
    ("do ", "a;", " while(a)"),
    ("(a=", "a", ")=>a"),
    ("async(", "a", ")"),
    ("f(()=>", "a", ")"),
    ("for(;;)", "a", ""),
    ("", "a", "``"),
    ("", "a", "?.a"),
    ("import(", "a", ")"),
    ("a<", "a", ""),
    ("a??", "a", ""),
    ("try{", "", "}catch{}"),
    ("-+", "a", ""),
    ("[...", "a", "]"),
    ("a[", "a", "]"),
    ("({a(){", "a", "}})"),
    ("({[", "a", "]:a})"),
    ("(class{a=", "a", "})"),
    ("(class{static{", "", "}})"),
    ("function a(){", "", "}"),
    ("switch(a){case ", "a", ":}"),
    ("while(a)", "a", ""),
    ("async a=>", "a", ""),
    ("({...", "a", "})"),
    ("void ", "a", ""),
    ("(a,", "a", ")"),
];

/// The estimate keeps the parser from overflowing the stack: if it were too low for one of these, the test process
/// would abort.
#[test]
fn the_estimated_stack_is_large_enough() {
    for (open, middle, close) in NESTINGS {
        let nested = |depth: usize| format!("{}{middle}{};process", open.repeat(depth), close.repeat(depth));
        let mut depth = 1;
        while measure(&nested(depth + 5)).stack <= INLINE_STACK {
            depth += 5;
        }
        let source = nested(depth);
        let shape = Shape { too_deep_at: None, ..measure(&source) };
        std::thread::scope(|scope| {
            let run = || parse_inline("handler.js", &source, &shape);
            let thread = std::thread::Builder::new().stack_size(INLINE_STACK).spawn_scoped(scope, run);
            thread.unwrap().join().unwrap();
        });
    }
}
