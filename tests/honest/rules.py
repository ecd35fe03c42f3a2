"""How a kernel's text is broken: one rule, one small edit of one line.

A rule is a name, a pattern and a replacement (a text or a function of the match; None removes the
line). It applies wherever its pattern matches outside comments, assembly and preprocessor lines;
rules of the plan apply to `//!` lines only.
"""
import math
import re


class Rule:
    def __init__(self, name, pattern, new, plan=False):
        self.name, self.new, self.plan = name, new, plan
        self.pattern = re.compile(pattern)

    def wants(self, line):
        text = line.strip()
        if text.startswith("//!"):
            return self.plan
        hidden = text.startswith(("//", "#", '"')) or "asm" in text or ' "' in text
        return not self.plan and not hidden and "__global__" not in text

    def apply(self, line):
        """The line as it becomes, for every place where the rule applies."""
        if not self.wants(line):
            return
        code = line.split(" //")[0] if not self.plan else line
        for m in self.pattern.finditer(code):
            if self.new is None:
                yield None
                return
            new = self.new(m) if callable(self.new) else m.expand(self.new)
            yield line[:m.start()] + new + line[m.end():]


def fourth_digit(m):
    """The number with its fourth significant digit one higher."""
    text = m.group(1)
    value = float(text)
    if value == 0:
        return m.group(0)
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 3)
    return "%.9g%sf" % (value + step, "" if "." in "%.9g" % (value + step) or
                        "e" in "%.9g" % (value + step) else ".0")


def halved(m):
    return m.group(1) + str(int(m.group(2)) // 2)


def doubled(m):
    return m.group(1) + str(int(m.group(2)) * 2)


NAME = r"[A-Za-z_][\w.]*"
OPERAND = r"[\w.]+(?:\[[^\]]*\])*"

RULES = [
    Rule("off by one", r"(\w)\[(%s)\]" % NAME, r"\1[\2 + 1]"),
    Rule("off by one", r"\[([^\[\]]+ \+ %s)\]" % NAME, r"[\1 + 1]"),
    Rule("dropped tail", r"(%s) < (%s)\b(?! *\()" % (NAME, NAME), r"\1 < \2 - 1"),
    Rule("<= for <", r"(?<![<(]) < ", " <= "),
    Rule("< for <=", r" <= ", " < "),
    Rule("< for <=", r" >= ", " > "),
    Rule("a fourth digit", r"(?<![\w.])(\d+\.?\d*(?:e-?\d+)?)f\b", fourth_digit),
    Rule("swapped stride", r"(%s) \* (%s) \+ (%s)\b(?![.\[(])" % (NAME, NAME, NAME),
         r"\3 * \2 + \1"),
    Rule("swapped stride", r"\)(%s) \* (\w+)(?=[;) ])" % NAME, r")\1 * (\2 + 1)"),
    Rule("dropped barrier", r"^ *__sync(threads|warp)\(\);$", lambda m: ";"),
    Rule("- for +", r"(?<=\w|\]|\)) \+ (?=\w|\()", " - "),
    Rule("- for +", r" \+= (?!\d)", " -= "),
    Rule("+ for -", r"(?<=\w|\]|\)) - (?=\w|\()", " + "),
    Rule("dropped term", r" [+-] %s(?![\w.\[(])" % OPERAND, ""),
    Rule("dropped factor", r" [*/] %s(?![\w.\[(])" % OPERAND, ""),
    Rule("wrong initial value", r"= 0\.0f;", "= 1.0f;"),
    Rule("wrong initial value", r"= 0\.0f,", "= 1.0f,"),
    Rule("wrong initial value", r"= -INFINITY\b", "= 0.0f"),
    Rule("bf16 intermediate", r"(\w) \+= ([^;]+);",
         r"\1 += __uint_as_float(__float_as_uint(\2) & 0xffff0000u);"),
    Rule("bf16 intermediate", r"(\] = )((?!__float2)[^;?]+);",
         r"\1__uint_as_float(__float_as_uint(\2) & 0xffff0000u);"),
    Rule("tf32 intermediate", r"(\w) \+= ([^;]+);",
         r"\1 += __uint_as_float(__float_as_uint(\2) & 0xffffe000u);"),
    Rule("wrong reduction width", r"(int step = )(\d+)(?=; step > 0)", halved),
    Rule("wrong reduction width", r"(\+= )(32|64|128|256|512)\b", doubled),
    Rule("wrong reduction width", r"\bw < (\d+)\b", lambda m: "w < %d" % (int(m.group(1)) - 1)),
    Rule("missing guard", r"^( *)if \([^;{]+\)( \{)?$", r"\1if (true)\2"),
    Rule("missing guard", r" && %s < %s(?=[ )])" % (NAME, NAME), ""),
    Rule("fast mathematics", r"\b(exp|log|sin|cos)f\(", r"__\1f("),
    Rule("fast mathematics", r"(%s) / (%s)(?=[;,)])" % (NAME, NAME), r"__fdividef(\1, \2)"),
    Rule("max for min", r"\b(f?)max(f?)\(", r"\1min\2("),
    Rule("max for min", r"\bmin\(", "max("),
    Rule("|| for &&", r" && ", " || "),
    Rule("NaN forgotten", r" \|\| (\w+) != \1\b", ""),
    Rule("NaN forgotten", r"if \((\w+) != \1 \|\| .*\)$", "if (false)"),
    Rule("dropped absolute value", r"\bfabsf\(", "("),
    Rule("wrong shuffle", r"__shfl_xor_sync", "__shfl_down_sync"),
    Rule("wrong shuffle", r"lane >= step", "lane > step"),
    Rule("another number", r"(?<=[<_ (])([2-9]|[1-9]\d+)(?=[>,;) ])",
         lambda m: str(int(m.group(1)) + 1)),
    Rule("another number", r"(?<=[<_ (])([1-9]\d+)(?=[>,;) ])",
         lambda m: str(int(m.group(1)) // 2)),
    Rule("floor for ceiling", r"ceil_div\((\w+(?:\*\w+)*), (\d+)\)", r"max(1, (\1) // \2)",
         plan=True),
    Rule("a missing memset", r"^//! memset .*", None, plan=True),
    Rule("a missing require", r"^//! require .*", None, plan=True),
]
