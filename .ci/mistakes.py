"""Find the places of a Rust source where a small mistake can be put in: operators, functions, arms and fields, named as cargo-mutants names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

RUST = Language(tree_sitter_rust.language())
OPERATORS = {
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "<": ["==", ">", "<="],
    ">": ["==", "<", ">="],
    "<=": [">"],
    ">=": ["<"],
    "+": ["-", "*"],
    "-": ["+", "/"],
    "*": ["+", "/"],
    "/": ["%", "*"],
    "%": ["/", "+"],
    "<<": [">>"],
    ">>": ["<<"],
    "&": ["|", "^"],
    "|": ["&", "^"],
    "^": ["|", "&"],
    "+=": ["-=", "*="],
    "-=": ["+=", "/="],
    "*=": ["+=", "/="],
    "/=": ["%=", "*="],
    "%=": ["/=", "+="],
    "<<=": [">>="],
    ">>=": ["<<="],
    "&=": ["|="],
    "|=": ["&="],
    "^=": ["|=", "&="],
}
"""What becomes of each operator."""
SCOPES = ("impl_item", "mod_item", "trait_item", "function_item")


def text(node: Node | None) -> str:
    return node.text.decode() if node is not None and node.text is not None else ""


def values(kind: str) -> list[str]:
    """Return what a function of this type could return at once."""
    kind = " ".join(kind.split())
    if kind == "()":
        return ["()"]
    if kind == "bool":
        return ["true", "false"]
    if re.fullmatch(r"u(8|16|32|64|128|size)|NonZero.*", kind):
        return ["0", "1"]
    if re.fullmatch(r"i(8|16|32|64|128|size)", kind):
        return ["0", "1", "-1"]
    if re.fullmatch(r"f(32|64)", kind):
        return ["0.0", "1.0", "-1.0"]
    if kind == "String":
        return ["String::new()", '"xyzzy".into()']
    if re.fullmatch(r"&('\w+ )?str", kind):
        return ['""', '"xyzzy"']
    if inner := re.fullmatch(r"Option<(.*)>", kind):
        return ["None", *(f"Some({one})" for one in values(inner[1]))]
    if inner := re.fullmatch(r"Result<([^,]*|\(.*\))(?:, .*)?>", kind):
        return [f"Ok({one})" for one in values(inner[1])]
    if inner := re.fullmatch(r"Vec<(.*)>", kind):
        return ["vec![]", *(f"vec![{one}]" for one in values(inner[1]))]
    if inner := re.fullmatch(r"Box<(.*)>", kind):
        return [f"Box::new({one})" for one in values(inner[1])]
    if inner := re.fullmatch(r"&mut (.*)", kind):
        return [f"Box::leak(Box::new({one}))" for one in values(inner[1])]
    if inner := re.fullmatch(r"&(?:'\w+ )?(.*)", kind):
        return [f"&{one}" for one in values(inner[1])] if "[" not in inner[1] else ["Vec::leak(Vec::new())"]
    return [] if kind in ("!", "Self") or "impl " in kind else ["Default::default()"]


def attributes(node: Node) -> str:
    """Return the attributes before an item."""
    found, before = "", node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", "line_comment", "block_comment"):
        found += text(before) if before.type == "attribute_item" else ""
        before = before.prev_named_sibling
    return found


def is_left_out(node: Node) -> bool:
    """Whether nothing is changed in an item: tests, unsafe functions, constructors and defaults."""
    if re.search(r"#\[(cfg\(test\)|test\b|.*mutants::skip)", attributes(node)):
        return True
    if node.type != "function_item":
        return False
    body = node.child_by_field_name("body")
    modifiers = next((child for child in node.children if child.type == "function_modifiers"), None)
    owner = node.parent.parent if node.parent is not None else None
    trait = text(owner.child_by_field_name("trait")) if owner is not None and owner.type == "impl_item" else ""
    constructs = owner is not None and owner.type == "impl_item" and text(node.child_by_field_name("name")) == "new"
    return body is None or not body.named_children or "unsafe" in text(modifiers) or constructs or trait == "Default"


def named(node: Node) -> str:
    """Return the name of a function: with its type, and the trait that it implements."""
    name = text(node.child_by_field_name("name"))
    owner = node.parent.parent if node.parent is not None else None
    if owner is not None and owner.type == "impl_item":
        kind = re.sub(r"<.*>$", "", text(owner.child_by_field_name("type")))
        trait = re.sub(r"<.*>$", "", text(owner.child_by_field_name("trait")))
        return f"<impl {trait} for {kind}>::{name}" if trait else f"{kind}::{name}"
    if owner is not None and owner.type == "trait_item":
        return f"{text(owner.child_by_field_name('name'))}::{name}"
    return name


class Found:
    """The places of one file, in the order of the text."""

    def __init__(self, file: str, source: str) -> None:
        self.file = file
        self.lines = source.split("\n")
        self.all: list[dict[str, Any]] = []
        self.walk(Parser(RUST).parse(source.encode()).root_node, None)

    def place(self, row: int, column: int) -> dict[str, int]:
        """Return a place: line and column from one, the column in characters."""
        return {"line": row + 1, "column": len(self.lines[row].encode()[:column].decode()) + 1}

    def add(self, genre: str, first: Node, last: Node, replacement: str, what: str, function: str | None) -> None:
        start, end = self.place(*first.start_point), self.place(*last.end_point)
        name = f"{self.file}:{start['line']}:{start['column']}: {what}"
        if function and genre != "FnValue":
            name += f" in {function}"
        self.all.append({"name": name, "file": self.file, "genre": genre, "replacement": replacement, "span": {"start": start, "end": end}})

    def walk(self, node: Node, function: str | None) -> None:
        if node.type in SCOPES and is_left_out(node):
            return
        if node.type == "function_item":
            function = named(node)
            body = node.child_by_field_name("body")
            kind = text(node.child_by_field_name("return_type")) or "()"
            shown = "" if kind == "()" else f" -> {' '.join(kind.split())}"
            inside = [child for child in body.named_children if "comment" not in child.type] if body else []
            for value in values(kind) if inside and body else []:
                if text(body) != f"{{ {value} }}":
                    self.add("FnValue", inside[0], inside[-1], value, f"replace {function}{shown} with {value}", function)
        elif node.type in ("binary_expression", "compound_assignment_expr"):
            operator = node.child_by_field_name("operator")
            for other in OPERATORS.get(text(operator), []) if operator else []:
                self.add("BinaryOperator", operator, operator, other, f"replace {text(operator)} with {other}", function)
        elif node.type == "unary_expression" and text(node.children[0]) in ("!", "-"):
            sign = node.children[0]
            self.add("UnaryOperator", sign, sign, "", f"delete {text(sign)}", function)
        elif node.type == "match_block":
            self.arms(node, function)
        elif node.type == "struct_expression":
            self.fields(node, function)
        for child in node.children:
            if child.type not in ("attribute_item", "macro_definition"):
                self.walk(child, function)

    def arms(self, block: Node, function: str | None) -> None:
        arms = [child for child in block.named_children if child.type == "match_arm"]
        patterns = [arm.child_by_field_name("pattern") for arm in arms]
        wild = any(text(pattern) == "_" for pattern in patterns)
        for arm, pattern in zip(arms, patterns, strict=True):
            condition = pattern.child_by_field_name("condition") if pattern else None
            shown = text(pattern).split(" if ")[0] if condition else text(pattern)
            if wild and shown != "_" and len(arms) > 1:
                self.add("MatchArm", arm, arm, "", f"delete match arm {' '.join(shown.split())}", function)
            if condition is not None and condition.type != "let_condition" and "let " not in text(condition):
                for value in ("true", "false"):
                    self.add("MatchArmGuard", condition, condition, value, f"replace match guard {' '.join(text(condition).split())} with {value}", function)

    def fields(self, whole: Node, function: str | None) -> None:
        body = whole.child_by_field_name("body")
        among = body.named_children if body else []
        if any(child.type == "base_field_initializer" for child in among):
            for child in among:
                if child.type in ("field_initializer", "shorthand_field_initializer"):
                    name = text(child).split(":")[0].strip()
                    what = f"delete field {name} from struct {text(whole.child_by_field_name('name'))} expression"
                    self.add("StructField", child, child, "", what, function)


def found_in(file: str, source: str) -> list[dict[str, Any]]:
    """Return the mistakes that a file allows, in the form of `cargo mutants --list --json`."""
    return Found(file, source).all


def touched(diff: str) -> Iterator[tuple[str, set[int]]]:
    """Return the lines of each file that a diff without context adds or changes."""
    for part in re.split(r"^diff --git ", diff, flags=re.M)[1:]:
        file = re.search(r"^\+\+\+ b/(.*)$", part, re.M)
        hunks = re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", part, re.M)
        if file:
            yield file[1], {line for at, count in hunks for line in range(int(at), int(at) + int(count or 1))}
