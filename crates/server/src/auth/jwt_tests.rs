//! Accepted and refused tokens. The examples of RFC 7515 test the signature verification.

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

struct Issuer {
    dir: tempfile::TempDir,
    ed: Ed25519KeyPair,
    ec: EcdsaKeyPair,
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let ed = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let ed = Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap();
        let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random).unwrap();
        let point = ec.public_key().as_ref();
        let keys = json!({ "keys": [
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encode(ed.public_key()) },
            { "kty": "EC", "crv": "P-256", "kid": "ec", "x": encode(&point[1..33]), "y": encode(&point[33..]) },
            { "kty": "oct", "kid": "shared", "k": "AAAA" },
            "not a key at all",
        ] });
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("jwks.json"), keys.to_string()).unwrap();
        Self { dir, ed, ec }
    }

    fn verifier(&self) -> Verifier {
        Verifier::new(Options {
            jwks: Source::File(self.dir.path().join("jwks.json")),
            issuer: "https://issuer.example".to_owned(),
            audience: "toolwright".to_owned(),
            roles_claim: "roles".to_owned(),
            org_claim: "org".to_owned(),
        })
    }

    fn token(&self, algorithm: &str, kid: &str, claims: &Value) -> String {
        let header = json!({ "alg": algorithm, "kid": kid, "typ": "JWT" });
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = match algorithm {
            "EdDSA" => encode(self.ed.sign(signed.as_bytes())),
            "ES256" => encode(self.ec.sign(&SystemRandom::new(), signed.as_bytes()).unwrap()),
            _ => encode("none"),
        };
        format!("{signed}.{signature}")
    }
}

fn valid_claims() -> Value {
    json!({ "iss": "https://issuer.example", "aud": ["other", "toolwright"], "sub": "mira", "exp": NOW + 100,
        "nbf": NOW - 100, "org": "studio", "roles": ["staff", "admin"] })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = valid_claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = valid_claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

#[tokio::test]
async fn a_valid_token_gives_its_principal() {
    let issuer = Issuer::new();
    let roles = vec!["staff".to_owned(), "admin".to_owned()];
    let mira = Principal { id: "mira".to_owned(), org: Some("studio".to_owned()), roles };
    for (algorithm, kid) in [("EdDSA", "ed"), ("ES256", "ec")] {
        let token = issuer.token(algorithm, kid, &valid_claims());
        assert_eq!(issuer.verifier().principal(&token, NOW).await, Ok(mira.clone()), "{algorithm}");
    }
    let spaced = issuer.token("EdDSA", "ed", &with("roles", "staff admin".into()));
    assert_eq!(issuer.verifier().principal(&spaced, NOW).await, Ok(mira));
}

#[tokio::test]
async fn missing_and_wrong_claims_are_refused() {
    let issuer = Issuer::new();
    let cases = [
        (with("exp", (NOW - 61).into()), Error::Expired),
        (with("exp", "9999999999".into()), Error::Expired),
        (without("exp"), Error::Expired),
        (with("nbf", (NOW + 61).into()), Error::TooEarly),
        (with("nbf", "now".into()), Error::TooEarly),
        (with("iss", "https://other.example".into()), Error::Issuer),
        (without("iss"), Error::Issuer),
        (with("aud", "toolwright2".into()), Error::Audience),
        (with("aud", json!([])), Error::Audience),
        (without("aud"), Error::Audience),
        (with("sub", "".into()), Error::Subject),
        (without("sub"), Error::Subject),
    ];
    for (claims, expected) in cases {
        let token = issuer.token("EdDSA", "ed", &claims);
        assert_eq!(issuer.verifier().principal(&token, NOW).await, Err(expected), "{claims}");
    }
}

#[tokio::test]
async fn tokens_without_a_valid_signature_are_refused() {
    let issuer = Issuer::new();
    let verifier = issuer.verifier();
    let token = issuer.token("EdDSA", "ed", &valid_claims());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (head, _) = signed.split_once('.').unwrap();
    let other = encode(with("sub", "eve".into()).to_string());
    let none = encode(json!({ "alg": "none" }).to_string());
    let critical = encode(json!({ "alg": "EdDSA", "kid": "ed", "crit": ["x"] }).to_string());
    let body = encode(valid_claims().to_string());
    let cases = [
        (format!("{head}.{other}.{signature}"), Error::Signature),
        (issuer.token("EdDSA", "ec", &valid_claims()), Error::Signature),
        (issuer.token("EdDSA", "unknown", &valid_claims()), Error::Signature),
        (Issuer::new().token("EdDSA", "ed", &valid_claims()), Error::Signature),
        (issuer.token("HS256", "shared", &valid_claims()), Error::Algorithm),
        (format!("{none}.{body}."), Error::Algorithm),
        (format!("{critical}.{body}.{signature}"), Error::Algorithm),
        ("a.b.c".to_owned(), Error::Malformed),
        ("..".to_owned(), Error::Malformed),
        ("x".repeat(20_000), Error::Malformed),
    ];
    for (token, expected) in cases {
        assert_eq!(verifier.principal(&token, NOW).await, Err(expected), "{token:.80}");
    }
}

/// RFC 7515, A.2 and A.3: the payload is that of A.1, expired in 2011.
#[test]
fn the_examples_of_rfc_7515_verify() {
    let payload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let rsa: Jwk = serde_json::from_value(json!({ "kty": "RSA", "e": "AQAB", "n": concat!(
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZ",
        "S-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2",
        "R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcD",
        "TW9gb54h4FRWyuXpoQ") })).unwrap();
    let signed = concat!(
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujG",
        "bds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383",
        "LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrB",
        "p0igcN_IoypGlUPQGe77Rw"
    );
    let ec: Jwk = serde_json::from_value(json!({ "kty": "EC", "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" }))
    .unwrap();
    let ec_signed = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    for (key, algorithm, signed) in [(rsa, "RS256", signed), (ec, "ES256", ec_signed)] {
        let message = format!("{}.{payload}", encode(format!("{{\"alg\":\"{algorithm}\"}}")));
        let mut signature = URL_SAFE_NO_PAD.decode(signed).unwrap();
        assert!(key.verifies(algorithm, message.as_bytes(), &signature), "{algorithm}");
        signature[9] ^= 1;
        assert!(!key.verifies(algorithm, message.as_bytes(), &signature), "{algorithm}");
    }
}
