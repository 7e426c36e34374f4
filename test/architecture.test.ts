import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

/** What src/ imports, against the table in src/README.md. A module is a top-level file or folder of src/. */
const src = fileURLToPath(new URL('../src/', import.meta.url))
const table = readTable(readFileSync(`${src}README.md`, 'utf8'))
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => path.endsWith('.ts'))
const imports = files.flatMap((file) => readImports(file, readFileSync(src + file, 'utf8')))

describe('the map of src/', () => {
  it('was compared with real code', () => {
    expect(files.length).toBeGreaterThan(1)
    expect(imports.length).toBeGreaterThan(0)
    expect(table.size).toBeGreaterThan(1)
  })

  it('lists every module that exists, and no other', () => {
    const present = new Set(files.map(moduleOf))
    expect([...table.keys()].sort()).toEqual([...present].sort())
  })

  it('allows only modules it lists', () => {
    const allowed = [...table.values()].flat()
    expect(allowed.filter((module) => !table.has(module))).toEqual([])
  })

  it('is obeyed by every import', () => {
    expect(findViolations(imports, table)).toEqual([])
  })

  it('has no circle of imports', () => {
    expect(findCycle(imports)).toEqual([])
  })

  it('keeps SQL on dead letters in one room', () => {
    const others = files.filter((file) => !file.startsWith('dead-letters/'))
    expect(others.filter((file) => readFileSync(src + file, 'utf8').includes('schema}.letters'))).toEqual([])
  })
})

describe('the check itself', () => {
  const rules = new Map([
    ['a', ['b']],
    ['b', []],
    ['errors.ts', []],
  ])
  const check = (file: string, code: string) => findViolations(readImports(file, code), rules)

  it('sees static, type, re-exporting, dynamic and inline type imports', () => {
    const code = `
      import x from '../b/index.ts'
      import type { Y } from '../c/index.ts'
      export { z } from '../d/index.ts'
      const later = () => import('../e/index.ts')
      type W = import('../f/index.ts').W`
    expect(readImports('a/x.ts', code).map(({ to }) => to)).toEqual(
      ['b', 'c', 'd', 'e', 'f'].map((folder) => `${folder}/index.ts`),
    )
  })

  it('accepts what the table lists, neighbours in the same folder, errors.ts and packages', () => {
    expect(check('a/x.ts', `import '../b/index.ts'; import './y.ts'; import '../errors.ts'; import 'pg'`)).toEqual([])
  })

  it('refuses a module that is not listed', () => {
    expect(check('b/x.ts', `import type { A } from '../a/index.ts'`)).toEqual(['b/x.ts may not import a (a/index.ts)'])
  })

  it('refuses to reach past the index of a folder', () => {
    expect(check('a/x.ts', `import '../b/inner.ts'`)).toEqual(['a/x.ts reaches into b (b/inner.ts): use its index.ts'])
  })

  it('refuses the package by its own name, which would load a second copy', () => {
    expect(check('a/x.ts', `import 'aftercommit'`)).toEqual(['a/x.ts imports the package by its own name'])
  })

  it('finds a circle over three modules', () => {
    const circle = ['a>b', 'b>c', 'c>a'].flatMap((edge) => {
      const [from = '', to = ''] = edge.split('>')
      return readImports(`${from}/index.ts`, `import '../${to}/index.ts'`)
    })
    expect(findCycle(circle)).toEqual(['a', 'b', 'c', 'a'])
  })
})

interface Import {
  from: string
  /** A path inside src/, or the specifier of a package. */
  to: string
  relative: boolean
}

/** Rows such as `log/` | … | `runtime`, `events`: module → what it may import. */
function readTable(markdown: string): Map<string, string[]> {
  const rows = markdown.split('\n').filter((line) => line.startsWith('| `'))
  return new Map(
    rows.map((row) => {
      const cells = row.split('|')
      const [module = ''] = namesIn(cells[1])
      return [module, namesIn(cells.at(-2))]
    }),
  )
}

function namesIn(cell = ''): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name.replace(/\/$/, ''))
}

/** Adapters are modules of their own: each is a door, and its peer is another one. */
function moduleOf(path: string): string {
  const [first = path, second = ''] = path.split('/')
  return first === 'adapters' ? `${first}/${second}` : first
}

function readImports(from: string, code: string): Import[] {
  const found: Import[] = []
  const add = (node: ts.Node | undefined) => {
    if (node === undefined || !ts.isStringLiteralLike(node)) return
    const relative = node.text.startsWith('.')
    found.push({ from, to: relative ? posix.join(posix.dirname(from), node.text) : node.text, relative })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) add(node.moduleSpecifier)
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal)
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) add(node.arguments[0])
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(from, code, ts.ScriptTarget.ESNext))
  return found
}

function findViolations(all: Import[], rules: Map<string, string[]>): string[] {
  return all.flatMap(({ from, to, relative }) => {
    if (!relative) return /^aftercommit(\/|$)/.test(to) ? [`${from} imports the package by its own name`] : []
    const [source, target] = [moduleOf(from), moduleOf(to)]
    if (source === target || target === 'errors.ts') return []
    if (!rules.get(source)?.includes(target)) return [`${from} may not import ${target} (${to})`]
    const throughDoor = to === target || to === `${target}/index.ts`
    return throughDoor ? [] : [`${from} reaches into ${target} (${to}): use its index.ts`]
  })
}

/** The first circle of modules met, as the path that closes it; empty when there is none. */
function findCycle(all: Import[]): string[] {
  const edges = new Map<string, Set<string>>()
  for (const { from, to, relative } of all) {
    if (!relative || moduleOf(from) === moduleOf(to)) continue
    edges.set(moduleOf(from), (edges.get(moduleOf(from)) ?? new Set()).add(moduleOf(to)))
  }
  const finished = new Set<string>()
  const walk = (module: string, path: string[]): string[] => {
    if (path.includes(module)) return [...path.slice(path.indexOf(module)), module]
    if (finished.has(module)) return []
    for (const next of edges.get(module) ?? []) {
      const cycle = walk(next, [...path, module])
      if (cycle.length > 0) return cycle
    }
    finished.add(module)
    return []
  }
  for (const module of edges.keys()) {
    const cycle = walk(module, [])
    if (cycle.length > 0) return cycle
  }
  return []
}
