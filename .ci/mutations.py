"""Put all mutants of a crate into a copy of its sources, each behind a number that the environment chooses.

mistakes.py says which mistakes there are and where; here each becomes a branch, so that a crate is compiled once and not once
for each: `a < b` becomes `match (&(a), &(b)) { (l, r) => if on(17) { *l == *r } else { *l < *r } }`, and operands stand once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

RUST = Language(tree_sitter_rust.language())
CHOICE = """
#[doc(hidden)]
pub(crate) mod __mutant {
    extern crate std;

    /// The number of the mutant that the environment chooses; zero is none.
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();

    #[inline(never)]
    pub(crate) fn on(number: u32) -> bool {
        *CHOSEN.get_or_init(|| std::env::var("FANIN_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)) == number
    }
}
"""
COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}


@dataclass(frozen=True)
class Mutant:
    """A mistake: its number, its name in the manner of cargo-mutants, the file, and what becomes of which place."""

    number: int
    name: str
    file: str
    genre: str
    replacement: str
    start: tuple[int, int]
    end: tuple[int, int]

    @property
    def label(self) -> str:
        """The name without the place, which changes: as docs/dev/mutants.md lists equal ones."""
        return re.sub(r"^([^:]*):\d+:\d+: ", r"\1: ", self.name)


@dataclass
class Edit:
    """A stretch of source, and what it is written as; the writer gets what writes a stretch within it."""

    start: int
    end: int
    mutants: list[Mutant]
    write: Callable[[Callable[[int, int], str], list[Mutant]], str]
    children: list[Edit] = field(default_factory=list)
    outer: bool = False
    """A guard or a field, around an expression of the same stretch."""


def on(mutant: Mutant) -> str:
    """Return the branch of a mutant, on a line of its own so that errors of the compiler name it."""
    return f"\n/*@{mutant.number}*/ if crate::__mutant::on({mutant.number}) "


class Source:
    """A file whose mutants are put in."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode()
        self.tree = Parser(RUST).parse(self.raw)
        self.lines = [0]
        self.text_lines = text.split("\n")
        for line in self.text_lines:
            self.lines.append(self.lines[-1] + len(line.encode()) + 1)

    def offset(self, place: tuple[int, int]) -> int:
        """Return the byte of a line and column, both from one, the column in characters."""
        line, column = place
        return self.lines[line - 1] + len(self.text_lines[line - 1][: column - 1].encode())

    def raw_text(self, node: Node) -> str:
        return self.raw[node.start_byte : node.end_byte].decode()

    def around(self, start: int, end: int, kinds: Iterable[str]) -> Node | None:
        """Return the innermost node of some kinds around a stretch."""
        node: Node | None = self.tree.root_node.descendant_for_byte_range(start, end)
        while node is not None and node.type not in kinds:
            node = node.parent
        return node

    def is_constant(self, at: int) -> bool:
        """Whether a place is evaluated by the compiler, which has no environment."""
        node: Node | None = self.tree.root_node.descendant_for_byte_range(at, at)
        while node is not None:
            if node.type in ("const_item", "static_item", "const_block"):
                return True
            if node.type == "function_item":
                modifiers = next((child for child in node.children if child.type == "function_modifiers"), None)
                return modifiers is not None and b"const" in (modifiers.text or b"")
            node = node.parent
        return False

    def edits(self, mutants: Sequence[Mutant]) -> tuple[list[Edit], list[Mutant]]:
        """Return the edits of the mutants, and those that cannot be chosen at run time."""
        places: dict[tuple[str, tuple[int, int], tuple[int, int]], list[Mutant]] = defaultdict(list)
        for mutant in mutants:
            places[mutant.genre, mutant.start, mutant.end].append(mutant)
        made: dict[tuple[int, int, bool], Edit] = {}
        left: list[Mutant] = []
        for (genre, first, last), group in places.items():
            start, end = self.offset(first), self.offset(last)
            edit = None if self.is_constant(start) else self.edit(genre, start, end, group)
            if edit is None:
                left += group
                continue
            edit.outer = genre not in ("BinaryOperator", "UnaryOperator")
            place = (edit.start, edit.end, edit.outer)
            if place not in made:
                made[place] = edit
            elif genre in ("MatchArm", "MatchArmGuard"):
                made[place] = self.guard(edit.start, edit.end, made[place].mutants + group)
                made[place].outer = True
            else:
                left += group
        return list(made.values()), left

    def edit(self, genre: str, start: int, end: int, group: list[Mutant]) -> Edit | None:
        if genre == "BinaryOperator":
            node = self.around(start, end, ("binary_expression", "compound_assignment_expr"))
            operator = node.child_by_field_name("operator") if node else None
            if node is None or operator is None or (operator.start_byte, operator.end_byte) != (start, end):
                return None
            return self.binary(node, self.raw_text(operator), group)
        if genre == "UnaryOperator":
            node = self.around(start, end, ("unary_expression",))
            if node is None or node.start_byte != start:
                return None
            return self.unary(node, self.raw[start:end].decode(), group)
        if genre == "FnValue":
            node = self.around(start, end, ("function_item",))
            body = node.child_by_field_name("body") if node else None
            returned = node.child_by_field_name("return_type") if node else None
            if body is None or (returned is not None and "impl " in self.raw_text(returned)):
                return None  # a type without a name has one value
            return self.body(body.start_byte + 1, group)
        if genre in ("MatchArm", "MatchArmGuard"):
            node = self.around(start, end, ("match_arm",))
            pattern = node.child_by_field_name("pattern") if node else None
            if pattern is None:
                return None
            condition = pattern.child_by_field_name("condition")
            if condition is None:
                return self.guard(pattern.end_byte, pattern.end_byte, group)
            return self.guard(condition.start_byte, condition.end_byte, group)
        if genre == "StructField":
            return self.struct_field(start, end, group)
        return None

    @staticmethod
    def binary(node: Node, operator: str, group: list[Mutant]) -> Edit | None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None
        a, b = (left.start_byte, left.end_byte), (right.start_byte, right.end_byte)

        def write(render: Callable[[int, int], str], kept: list[Mutant]) -> str:
            if node.type == "compound_assignment_expr":
                place = render(*a)
                branches = "".join(f"{on(m)} {{ {place} {m.replacement} __r }} else" for m in kept)
                return f"{{ let __r = {render(*b)};{branches}\n{{ {place} {operator} __r }} }}"
            if operator in ("&&", "||"):
                swapped = " || ".join(f"crate::__mutant::on({m.number})" for m in kept)
                marks = "".join(f"/*@{m.number}*/" for m in kept)
                swap = f"({swapped})" if operator == "&&" else f"!({swapped})"
                return f"({{ let __l: bool = {render(*a)};\n{marks} if __l != {swap} {{ {render(*b)} }} else {{ __l }} }})"
            if operator in COMPARISONS:
                branches = "".join(f"{on(m)} {{ *__l {m.replacement} *__r }} else" for m in kept)
                return f"(match (&({render(*a)}), &({render(*b)})) {{ (__l, __r) => {branches}\n{{ *__l {operator} *__r }} }})"
            branches = "".join(f"{on(m)} {{ __l {m.replacement} __r }} else" for m in kept)
            return f"(match ({render(*a)}, {render(*b)}) {{ (__l, __r) => {branches}\n{{ __l {operator} __r }} }})"

        if operator in ("&&", "||") and {m.replacement for m in group} - {"&&", "||"}:
            return None
        return Edit(node.start_byte, node.end_byte, group, write)

    @staticmethod
    def unary(node: Node, operator: str, group: list[Mutant]) -> Edit:
        operand = node.children[-1]

        def write(render: Callable[[int, int], str], kept: list[Mutant]) -> str:
            branches = "".join(f"{on(m)} {{ __x }} else" for m in kept)
            inner = render(operand.start_byte, operand.end_byte)
            return f"(match {inner} {{ __x => {branches}\n{{ {operator}__x }} }})"

        return Edit(node.start_byte, node.end_byte, group, write)

    @staticmethod
    def body(at: int, group: list[Mutant]) -> Edit:
        def write(_: Callable[[int, int], str], kept: list[Mutant]) -> str:
            return "".join(f"{on(m)} {{ return {m.replacement}; }}" for m in kept) + "\n"

        return Edit(at, at, group, write)

    @staticmethod
    def guard(start: int, end: int, group: list[Mutant]) -> Edit:
        def write(render: Callable[[int, int], str], kept: list[Mutant]) -> str:
            gone = [m for m in kept if m.genre == "MatchArm"]
            fixed = [m for m in kept if m.genre == "MatchArmGuard"]
            branches = "".join(f"{on(m)} {{ {m.replacement} }} else" for m in fixed)
            asked = f"({branches} {{ {render(start, end)} }})" if end > start else ""
            parts = [f"\n/*@{m.number}*/ !crate::__mutant::on({m.number})" for m in gone] + ([asked] if asked else [])
            return (" if " if start == end else "") + " && ".join(parts)

        return Edit(start, end, group, write)

    def struct_field(self, start: int, end: int, group: list[Mutant]) -> Edit | None:
        node = self.around(start, start, ("field_initializer", "shorthand_field_initializer"))
        whole = self.around(start, start, ("struct_expression",))
        if node is None or whole is None or node.parent is None:
            return None
        base = next((child for child in node.parent.children if child.type == "base_field_initializer"), None)
        path = whole.child_by_field_name("name")
        if base is None or path is None:
            return None
        name = self.raw_text(node).split(":")[0].strip()
        value = node.child_by_field_name("value") or node
        prefix = "" if value is not node else f"{name}: "
        other = self.raw_text(base).removeprefix("..")
        kind = self.raw_text(path)

        def write(render: Callable[[int, int], str], kept: list[Mutant]) -> str:
            branches = "".join(f"{on(m)} {{ let __b: {kind} = {other}; __b.{name} }} else" for m in kept)
            return f"{prefix}({branches}\n{{ {render(value.start_byte, value.end_byte)} }})"

        return Edit(value.start_byte, value.end_byte, group, write)

    def written(self, edits: Sequence[Edit], without: set[int]) -> str:
        """Return the text with all mutants in it but some."""
        roots: list[Edit] = []
        for edit in edits:
            edit.children = []
        stack: list[Edit] = []
        for edit in sorted(edits, key=lambda edit: (edit.start, -edit.end, not edit.outer)):
            while stack and not (stack[-1].start <= edit.start and edit.end <= stack[-1].end and stack[-1].end > stack[-1].start):
                stack.pop()
            (stack[-1].children if stack else roots).append(edit)
            stack.append(edit)

        def write(edit: Edit) -> str:
            kept = [mutant for mutant in edit.mutants if mutant.number not in without]
            inside = lambda start, end: stretch(start, end, edit.children)  # noqa: E731
            if not kept:
                return inside(edit.start, edit.end)
            numbers = ",".join(str(mutant.number) for mutant in kept)
            return f"/*<{numbers}*/{edit.write(inside, kept)}/*{numbers}>*/"

        def stretch(start: int, end: int, among: Sequence[Edit]) -> str:
            parts, at = [], start
            for edit in among:
                if start <= edit.start and edit.end <= end:
                    parts += [self.raw[at : edit.start].decode(), write(edit)]
                    at = edit.end
            return "".join([*parts, self.raw[at:end].decode()])

        return stretch(0, len(self.raw), roots)


def blamed(text: str, line: int) -> set[int]:
    """Return the mutants that an error of the compiler in a line is about: those of the line, else of what is around it."""
    lines = text.split("\n")
    here = lines[line - 1] if line <= len(lines) else ""
    if found := re.findall(r"/\*@(\d+)\*/", here):
        return {int(number) for number in found}
    open_: list[str] = []
    before = "\n".join(lines[:line])
    for mark in re.finditer(r"/\*(?:<([\d,]+)|([\d,]+)>)\*/", before):
        if mark[1]:
            open_.append(mark[1])
        elif open_ and mark.end() < len(before) - len(here):
            open_.pop()
    return {int(number) for number in open_[-1].split(",")} if open_ else set()


def arms(text: str, line: int) -> set[int]:
    """Return the mutants that take an arm away from a match whose value is in a line, which says that it lacks one."""
    source = Source(text)
    at = source.lines[line - 1]
    node = source.around(at, at + len(source.text_lines[line - 1].encode()) - 1, ("match_expression", "block", "source_file"))
    pending, found = [node], set()
    while pending and node is not None:
        one = pending.pop()
        if one is not None and one.type == "match_expression" and one.start_point[0] <= line - 1 <= one.start_point[0] + 3:
            found |= {int(number) for number in re.findall(r"/\*@(\d+)\*/ !crate", source.raw_text(one))}
        elif one is not None:
            pending += one.children
    return found


def listed(found: Sequence[dict[str, Any]]) -> list[Mutant]:
    """Return mutants as they are listed, numbered from one."""
    place = lambda at: (at["line"], at["column"])  # noqa: E731
    return [
        Mutant(number, one["name"], one["file"], one["genre"], one["replacement"], place(one["span"]["start"]), place(one["span"]["end"]))
        for number, one in enumerate(found, start=1)
    ]
