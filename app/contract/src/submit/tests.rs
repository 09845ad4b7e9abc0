use super::*;

fn catalog() -> Catalog {
    Catalog {
        teams: vec!["fraud-ml".into()],
        flavours: vec!["h100-80g".into(), "a100-80g".into()],
        levels: vec!["block".into(), "rack".into(), "node".into()],
        restart_budget: 5,
    }
}

fn check(text: &str, wrong: &[&str]) {
    let job: SubmitJob = serde_json::from_str(text).expect(text);
    let fields: Vec<String> = match job.check(&catalog()) {
        Ok(spec) => {
            let again = SubmitJob::from_spec(&spec);
            assert_eq!(
                again.check(&catalog()).as_ref(),
                Ok(&spec),
                "a spec read back is the same spec"
            );
            Vec::new()
        }
        Err(errors) => errors.into_iter().map(|error| error.field).collect(),
    };
    assert_eq!(fields, wrong, "{text}");
}

#[test]
fn every_wrong_field_is_named_at_once() {
    let good = r#"{"team":"fraud-ml","name":"a","image":"i","flavours":["h100-80g"],"pods":4,"gpus_per_pod":8,"topology":"block"}"#;
    check(good, &[]);
    check(
        &good.replace("\"a\"", "\"A b\"").replace("fraud-ml", "x"),
        &["team", "name"],
    );
    check(
        &good.replace("\"block\"", "\"galaxy\"").replace(":4", ":0"),
        &["pods", "topology"],
    );
    check(&good.replace(":8", ":1.5"), &["gpus_per_pod"]);
    check(&good.replace(":8", ":0"), &["gpus_per_pod"]);
    check(&good.replace("[\"h100-80g\"]", "[]"), &["flavours"]);
    check(
        &good.replace(
            "\"topology\":\"block\"",
            "\"topology\":\"block\",\"segment_pods\":3",
        ),
        &["segment_pods"],
    );
    check(
        &good.replace(
            "\"topology\":\"block\"",
            "\"time_limit\":\"1s\",\"checkpoint\":{\"period\":\"5m\",\"save\":\"6m\"}",
        ),
        &["time_limit", "checkpoint.save"],
    );
    check(&good.replace(":4", ":1025"), &[]);
    let many = vec!["\"abacus\""; 17].join(",");
    check(&good.replace("\"h100-80g\"", &many), &["flavours"]);
    for (least, wrong) in [
        (0, &["min_pods"][..]),
        (5, &["min_pods"]),
        (4, &[]),
        (1, &[]),
    ] {
        let elastic = format!("\"pods\":4,\"min_pods\":{least}");
        check(&good.replace("\"pods\":4", &elastic), wrong);
    }
    check(
        &good.replace("\"pods\":4", "\"pods\":4,\"segment_pods\":2,\"min_pods\":3"),
        &["min_pods"],
    );
}

#[test]
fn a_form_that_does_not_parse_names_its_fields() {
    let form = SubmitForm {
        pods: "four".into(),
        gpus_per_pod: "8".into(),
        time_limit: "soon".into(),
        ..SubmitForm::default()
    };
    let fields: Vec<_> = form
        .parse()
        .expect_err("two wrong fields")
        .into_iter()
        .map(|error| error.field)
        .collect();
    assert_eq!(fields, ["pods", "time_limit"]);
}

#[test]
fn a_form_names_what_does_not_parse_and_what_cannot_be_together() {
    let form = SubmitForm {
        team: "fraud-ml".into(),
        name: "A b".into(),
        image: "i".into(),
        flavours: "h100-80g".into(),
        pods: "four".into(),
        gpus_per_pod: "8".into(),
        topology: "galaxy".into(),
        time_limit: "1s".into(),
        ..SubmitForm::default()
    };
    let wrong = form.wrong(&catalog());
    let fields: Vec<_> = wrong.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["pods", "name", "topology", "time_limit"]);
    let segments = SubmitForm {
        topology: "block".into(),
        segment_pods: "3".into(),
        ..form
    };
    let wrong = segments.wrong(&catalog());
    let fields: Vec<_> = wrong.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        ["pods", "name", "time_limit"],
        "segments of unread pods are not judged"
    );
}
