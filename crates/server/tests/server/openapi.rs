//! The OpenAPI document: it lists exactly the routes, and every response of the tests conforms to its schemas.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use hyper::Method;
use serde_json::{Value, json};
use toolwright_schema::Validator;
use toolwright_server::route::{Access, ROUTES, Route, RouteMatch, find};

use super::client::Response;

fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(toolwright_server::OPENAPI).unwrap())
}

/// A validator of a schema of the document, with the components it may refer to.
fn validator(schema: &Value) -> Validator {
    let whole = json!({ "allOf": [schema], "components": document()["components"] });
    Validator::compile(&whole).unwrap()
}

/// Resolves a reference within the document.
fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(pointer) => {
            document().pointer(&pointer[1..]).unwrap_or_else(|| panic!("{pointer} leads nowhere"))
        }
        None => value,
    }
}

/// Validates a response against the document.
pub fn check(method: &str, path: &str, response: &Response) {
    assert!(response.header("x-request-id").is_some(), "{response:?}");
    let path = path.split('?').next().unwrap();
    let Ok(method) = method.parse::<Method>() else { return };
    let RouteMatch::Route(route, _) = find(&method, path) else { return };
    if route.is_of_console() {
        return;
    }
    let operation = &document()["paths"][route.path][route.method.to_lowercase()];
    let documented = resolved(&operation["responses"][response.status.to_string()]);
    assert!(
        documented.is_object(),
        "{method} {path} answers {}, which is not in the document",
        response.status
    );
    let Some(content) = documented.get("content") else {
        assert!(response.body.is_empty(), "{response:?}");
        return;
    };
    let form = response.header("content-type").unwrap().split(';').next().unwrap();
    let schema = content.get(form).unwrap_or_else(|| panic!("{method} {path} answers {form}"));
    if matches!(form, "application/json" | "application/problem+json") && method != Method::HEAD {
        let mut body = response.json();
        if let Err(errors) = validator(&schema["schema"]).validate(&mut body) {
            panic!("{method} {path} answers {body}, which does not conform: {errors:?}");
        }
    }
}

/// The routes for programs; the others are pages of the console.
fn api() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| !route.is_of_console())
}

#[test]
fn the_document_lists_exactly_the_routes() {
    let routes: BTreeSet<_> =
        api().map(|route| (route.path.to_owned(), route.method.to_lowercase())).collect();
    assert_eq!(routes.len(), api().count());
    let paths = document()["paths"].as_object().unwrap().iter();
    let listed: BTreeSet<_> = paths
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (path.clone(), method.clone()))
        })
        .collect();
    assert_eq!(listed, routes);
}

#[test]
fn the_document_has_the_parameters_bodies_and_access_of_each_route() {
    for route in api() {
        let operation = &document()["paths"][route.path][route.method.to_lowercase()];
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let in_path: Vec<_> =
            parameters.filter(|one| one["in"] == "path").map(|one| one["name"].as_str().unwrap()).collect();
        let expected: Vec<_> = route.path.split(['{', '}']).skip(1).step_by(2).collect();
        assert_eq!(in_path, expected, "{}", route.path);
        assert_eq!(operation["requestBody"].is_object(), route.method == "POST", "{}", route.path);
        let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
        assert_eq!(is_open, matches!(route.access, Access::Open | Access::Link), "{}", route.path);
    }
}

#[test]
fn every_schema_of_the_document_compiles() {
    for (name, schema) in document()["components"]["schemas"].as_object().unwrap() {
        validator(schema);
        assert!(schema.is_object(), "{name}");
    }
}

#[test]
fn the_document_describes_its_own_server() {
    assert_eq!(document()["servers"][0]["url"], "/");
}
