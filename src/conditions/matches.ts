import type { ASTNode } from '@marcbachmann/cel-js'
import { RE2JS } from 're2js'
import { spend } from './budget.ts'
import type { Call } from './calls.ts'
import { describeValue } from './names.ts'
import { absence, type Run, refuse, type Site, textOf } from './part.ts'
import { canBe, describeShape } from './shape.ts'
import { Unresolved } from './unresolved.ts'

/**
 * `email.matches('@example[.]com$')`: whether the pattern is found anywhere in the text. The engine is RE2, whose time
 * grows with the length of the text and not with the patience of an attacker. A pattern is part of the rule and not of
 * the data: it has to be a literal, and is compiled with the rule.
 */
export function compileMatches({ args, node }: Call, receiver: ASTNode, site: Site): Run {
  const [pattern] = args
  if (pattern === undefined || args.length > 1) refuse(site, node, 'matches() takes one pattern')
  if (pattern.op !== 'value' || typeof pattern.args !== 'string') {
    refuse(site, pattern, 'the pattern of matches() has to be a text literal')
  }
  const expression = compilePattern(pattern.args, pattern, site)
  // Every character may visit every instruction of the program.
  const cost = 1 + (expression.programSize() >> 1)
  const text = site.compile(receiver)
  if (!canBe(text.shape, 'text')) {
    refuse(site, text, `matches() works on text, and ${textOf(site, text)} is ${describeShape(text.shape)}`)
  }
  const absent = absence(site, text)
  return (scope, locals, item) => {
    const value = text.run(scope, locals, item)
    if (value instanceof Unresolved) return value
    if (value === undefined || value === null) return absent
    if (typeof value !== 'string')
      return new Unresolved(text, `matches() works on text, not on ${describeValue(value)}`)
    spend(1 + value.length * cost)
    return expression.test(value)
  }
}

function compilePattern(pattern: string, at: ASTNode, site: Site): RE2JS {
  try {
    return RE2JS.compile(pattern)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : 'unreadable'
    return refuse(site, at, `the pattern cannot be used: ${reason}`)
  }
}
