/** Words that the variable of a loop cannot have: names that always mean the same, and the words of CEL. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  ...['event', 'payload', 'changes', 'previous', 'env', 'loop'],
  ...['true', 'false', 'null', 'in', '__proto__', 'prototype', 'constructor'],
  ...['as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import', 'let', 'namespace', 'package'],
  ...['return', 'var', 'void', 'while'],
])
