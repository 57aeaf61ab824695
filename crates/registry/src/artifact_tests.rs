use std::io::Cursor;

use super::*;

fn header() -> Header {
    Header {
        format_version: FORMAT_VERSION,
        version: "1.0.abcdef12".to_owned(),
        content_digest: "sha256:00".to_owned(),
        git_commit: None,
        build_timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
    }
}

#[test]
fn lines_taken_over_give_the_same_bytes_as_fresh_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let entries: Vec<String> = (0..5).map(|at| format!("{{\"toolId\":\"t{at}\"")).collect();
    let compiled: Vec<Line<'_>> = entries
        .iter()
        .map(|entry| Line::Compiled { entry: entry.as_bytes(), handler_path: "t/handler.js" })
        .collect();
    let positions = replace(&path, &header(), &compiled, None).unwrap().lines;
    let expected = fs::read(&path).unwrap();
    let parsed: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    assert_eq!(parsed["tools"][4], json!({"toolId": "t4", "handlerPath": "t/handler.js"}));
    for mask in 0..32_u32 {
        let lines: Vec<Line<'_>> = (0..5)
            .map(|at| match mask >> at & 1 {
                0 => compiled[at].clone(),
                _ => Line::Copied(positions[at].clone()),
            })
            .collect();
        let old = File::open(&path).unwrap();
        assert_eq!(replace(&path, &header(), &lines, Some(&old)).unwrap().lines, positions, "{mask:05b}");
        assert_eq!(fs::read(&path).unwrap(), expected, "{mask:05b}");
    }
    assert_eq!(to_bytes(&header(), &compiled).unwrap(), expected);
}

#[test]
fn a_disk_that_fills_up_is_an_error_at_every_byte() {
    let line = [Line::Compiled { entry: b"{\"toolId\":\"t\"", handler_path: "t/handler.js" }];
    let whole = to_bytes(&header(), &line).unwrap();
    for size in 0..whole.len() {
        let mut space = vec![0; size];
        let mut disk = Cursor::new(space.as_mut_slice());
        let result = write_to(&mut disk, &header(), &line, |_, _| Ok(()));
        assert!(result.is_err(), "{size}");
    }
}

#[test]
fn a_failed_write_leaves_the_old_artifact_and_no_other_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    fs::write(&path, "old").unwrap();
    // The line to copy is beyond the end of the old artifact.
    let old = File::open(&path).unwrap();
    let error = replace(&path, &header(), &[Line::Copied(100..200)], Some(&old)).unwrap_err();
    assert!(error.to_string().contains(FILE_NAME));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let below_a_file = path.join("out.json");
    let error = replace(&below_a_file, &header(), &[], None).unwrap_err();
    assert!(error.help().contains("write"), "{error}");
}
