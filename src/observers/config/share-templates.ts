import type { CompiledText, CompiledTree, TemplateCompiler } from '../action.ts'

/**
 * A thousand observers send much the same messages, so a template that was compiled once is used again. Nothing of an event
 * stays in it. What is wrong is compiled anew each time: it is told where it stands.
 */
export function shareTemplates(compiler: TemplateCompiler): TemplateCompiler {
  const texts = new Map<string, CompiledText>()
  const trees = new Map<string, CompiledTree>()
  return {
    text: (source, target, name) =>
      remember(texts, `${target}\0${name}\0${source}`, () => compiler.text(source, target, name)),
    tree(value, name) {
      const text = textOf(value)
      if (text === undefined) return compiler.tree(value, name)
      return remember(trees, `${name}\0${text}`, () => compiler.tree(value, name))
    },
    firstHoleOfUrl: (source) => compiler.firstHoleOfUrl(source),
  }
}

function remember<T>(known: Map<string, T>, key: string, make: () => T): T {
  const found = known.get(key) ?? make()
  known.set(key, found)
  return found
}

/** Undefined for what has no text that tells it from everything else, like a secret or a number that no double can hold. */
function textOf(value: unknown): string | undefined {
  return isPlain(value) ? JSON.stringify(value) : undefined
}

function isPlain(value: unknown): boolean {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isPlain)
  if (typeof value !== 'object') return false
  const prototype = Object.getPrototypeOf(value)
  return (prototype === null || prototype === Object.prototype) && Object.values(value).every(isPlain)
}
