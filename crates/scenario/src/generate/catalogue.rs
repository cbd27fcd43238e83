//! Catalogue of a schema: every named type once, dependencies first, each under a unique name.

use super::camel;
use fanin_params::{ChoiceSchema, Field, NamesSchema, Schema, StructSchema, Variant};

/// `kind` of an alternative of a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind {
    pub name: &'static str,
    /// True if a table must give its `kind`, false if this is the default.
    pub needed: bool,
}

impl Kind {
    pub(super) fn of(variant: &Variant) -> Self {
        Kind { name: variant.kind, needed: !variant.default }
    }
}

/// A named type of the schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// A table, with its `kind` if it is an alternative of a choice.
    Table {
        kind: Option<Kind>,
        body: StructSchema,
    },
    Choice(ChoiceSchema),
    Names(NamesSchema),
}

/// All named types of a schema.
pub(super) struct Catalogue {
    types: Vec<(String, Type)>,
}

impl Catalogue {
    pub(super) fn of(schema: &Schema) -> Self {
        let mut catalogue = Catalogue { types: Vec::new() };
        catalogue.visit(schema);
        catalogue
    }

    /// Types in dependency order, each after those that it uses.
    pub(super) fn types(&self) -> impl DoubleEndedIterator<Item = (&str, &Type)> {
        self.types.iter().map(|(name, ty)| (name.as_str(), ty))
    }

    /// Name of a type of the schema.
    ///
    /// # Panics
    /// When `ty` is not part of the schema.
    fn name_of(&self, ty: &Type) -> &str {
        let found = self.types.iter().find(|(_, known)| known == ty);
        &found.expect("every type of the schema was visited").0
    }

    pub(super) fn table_name(&self, kind: Option<Kind>, body: &StructSchema) -> &str {
        self.name_of(&Type::Table { kind, body: body.clone() })
    }

    pub(super) fn choice_name(&self, choice: &ChoiceSchema) -> &str {
        self.name_of(&Type::Choice(choice.clone()))
    }

    pub(super) fn names_name(&self, names: &NamesSchema) -> &str {
        self.name_of(&Type::Names(names.clone()))
    }

    fn visit(&mut self, schema: &Schema) {
        match schema {
            Schema::Bool | Schema::Int | Schema::Float | Schema::Text | Schema::Quantity { .. } => {}
            Schema::List(inner) | Schema::Map(inner) | Schema::Optional(inner) => self.visit(inner),
            Schema::Struct(body) => {
                self.visit_fields(&body.fields);
                self.add(&[body.name.to_string()], Type::Table { kind: None, body: body.clone() });
            }
            Schema::Choice(choice) => {
                for variant in &choice.variants {
                    self.visit_fields(&variant.body.fields);
                    let of_choice = format!("{}{}", camel(variant.kind), choice.name);
                    // A table that several kinds share, or whose name says nothing, is named after the kind and the choice.
                    let shared = choice.variants.iter().filter(|v| v.body.name == variant.body.name).count() > 1;
                    let named = !variant.body.fields.is_empty() || variant.body.name.eq_ignore_ascii_case(&camel(variant.kind));
                    let own = if named && !shared { variant.body.name } else { &of_choice };
                    let candidates = [own.to_string(), of_choice.clone()];
                    self.add(&candidates, Type::Table { kind: Some(Kind::of(variant)), body: variant.body.clone() });
                }
                self.add(&[choice.name.to_string(), format!("{}Choice", choice.name)], Type::Choice(choice.clone()));
            }
            Schema::Names(names) => {
                self.add(&[names.name.to_string(), format!("{}Name", names.name)], Type::Names(names.clone()))
            }
        }
    }

    fn visit_fields(&mut self, fields: &[Field]) {
        for field in fields {
            self.visit(&field.schema);
        }
    }

    /// Adds a type under the first unused name of `candidates`.
    fn add(&mut self, candidates: &[String], ty: Type) {
        if self.types.iter().any(|(_, known)| *known == ty) {
            return;
        }
        let free = |name: &String| !self.types.iter().any(|(taken, _)| taken == name);
        let numbered = (2..).map(|n| format!("{}{n}", candidates[0]));
        let name = candidates.iter().cloned().chain(numbered).find(free).expect("there are always more numbers");
        self.types.push((name, ty));
    }
}

/// True if all keys have defaults, so that the bare `kind` stands for the table.
pub(super) fn bare(body: &StructSchema) -> bool {
    body.fields.iter().all(|field| field.default.is_some() || matches!(field.schema, Schema::Optional(_)))
}

/// True if the key must be given.
pub(super) fn required(field: &Field) -> bool {
    field.default.is_none() && !matches!(field.schema, Schema::Optional(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_of_different_tables_are_kept_apart() {
        let table = |doc: &str| StructSchema { name: "Params", doc: doc.to_string(), fields: Vec::new() };
        let field = |name, doc| Field {
            name,
            doc: String::new(),
            schema: Schema::Struct(table(doc)),
            default: None,
            range: None,
            bounds: None,
        };
        let root = StructSchema {
            name: "Root",
            doc: String::new(),
            fields: vec![field("a", "one"), field("b", "two"), field("c", "one")],
        };
        let catalogue = Catalogue::of(&Schema::Struct(root));
        let names: Vec<&str> = catalogue.types().map(|(name, _)| name).collect();
        assert_eq!(names, ["Params", "Params2", "Root"]);
        assert_eq!(catalogue.table_name(None, &table("two")), "Params2");
    }
}
