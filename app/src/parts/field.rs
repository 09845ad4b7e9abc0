//! Form fields: label, control, hint, error; tied together for those who cannot see them.

use contract::FieldError;
use leptos::prelude::*;

/// A field of a form.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// Its name in the form.
    pub name: &'static str,
    /// Its label.
    pub label: &'static str,
    /// What is in it.
    pub value: &'a str,
    /// What to know about it; may be empty.
    pub hint: &'static str,
    /// Errors of the whole form.
    pub errors: &'a [FieldError],
}

impl Field<'_> {
    fn id(&self) -> String {
        format!("f-{}", self.name.replace('_', "-"))
    }

    /// Messages for this field. The contract names nested fields with a dot, forms with an underscore.
    fn messages(&self) -> Vec<String> {
        let mine = self
            .errors
            .iter()
            .filter(|error| error.field.replace('.', "_") == self.name);
        mine.map(|error| error.message.clone()).collect()
    }

    fn described(&self) -> Option<String> {
        let id = self.id();
        match (self.hint.is_empty(), self.messages().is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!("{id}-hint")),
            (true, false) => Some(format!("{id}-error")),
            (false, false) => Some(format!("{id}-error {id}-hint")),
        }
    }

    fn around(&self, class: &'static str, control: AnyView) -> AnyView {
        let id = self.id();
        let error = field_error(&format!("{id}-error"), &self.messages());
        let hint = (!self.hint.is_empty())
            .then(|| view! { <p class="hint" id=format!("{id}-hint")>{self.hint}</p> });
        view! {
            <div class=format!("field {class}")>
                <label for=id>{self.label}</label>
                {control}
                {error}
                {hint}
            </div>
        }
        .into_any()
    }

    fn invalid(&self) -> Option<&'static str> {
        (!self.messages().is_empty()).then_some("true")
    }
}

/// What was refused about a form as a whole; nothing when nothing was.
pub fn form_error(errors: &[FieldError]) -> Option<AnyView> {
    let refused = errors.iter().find(|error| error.field == "form")?;
    let text = super::capital(&refused.message);
    Some(view! { <p class="notice bad" role="alert">{text}"."</p> }.into_any())
}

/// The error beside a field; nothing when there is none.
pub fn field_error(id: &str, messages: &[String]) -> Option<impl IntoView + use<>> {
    (!messages.is_empty()).then(|| {
        let id = id.to_owned();
        let text = messages.join("; ");
        view! { <p class="error" id=id>{text}</p> }
    })
}

/// A line of text. `list` names a datalist with known values.
pub fn text_field(field: Field<'_>, class: &'static str, list: Option<&'static str>) -> AnyView {
    let control = view! {
        <input
            id=field.id()
            name=field.name
            value=field.value.to_owned()
            list=list
            autocomplete="off"
            spellcheck="false"
            aria-invalid=field.invalid()
            aria-describedby=field.described()
        />
    };
    field.around(class, control.into_any())
}

/// One of some values, each with its words. A value that is not among them is kept as it came, to be shown with its error.
pub fn choice(field: Field<'_>, class: &'static str, options: &[(String, String)]) -> AnyView {
    let known = field.value.is_empty() || options.iter().any(|(value, _)| value == field.value);
    let kept = (!known).then(|| {
        let value = field.value.to_owned();
        view! { <option value=value.clone() selected>{value.clone()}</option> }
    });
    let options: Vec<_> = options
        .iter()
        .map(|(value, word)| {
            let selected = value == field.value;
            view! { <option value=value.clone() selected=selected>{word.clone()}</option> }
        })
        .collect();
    let control = view! {
        <select
            id=field.id()
            name=field.name
            aria-invalid=field.invalid()
            aria-describedby=field.described()
        >
            {kept}
            {options}
        </select>
    };
    field.around(class, control.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_field_keeps_what_was_typed_and_is_tied_to_its_error() {
        let errors = [FieldError::new("checkpoint.period", "write 35m")];
        let field = Field {
            name: "checkpoint_period",
            label: "Every",
            value: "\"soon\"",
            hint: "",
            errors: &errors,
        };
        let html = text_field(field, "", None).to_html();
        assert!(html.contains("aria-invalid=\"true\""), "{html}");
        assert!(
            html.contains("aria-describedby=\"f-checkpoint-period-error\""),
            "{html}"
        );
        assert!(
            html.contains("id=\"f-checkpoint-period-error\"") && html.contains("write 35m"),
            "{html}"
        );
        assert!(html.contains("&quot;soon&quot;"), "{html}");
    }
}
