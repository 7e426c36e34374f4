import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ERROR_CODES } from '../src/errors.ts'
import {
  anchors,
  type Block,
  cutRegion,
  findBlocks,
  headings,
  localLinks,
  readPage,
  readPages,
  root,
  tableBelow,
} from './markdown.ts'

const pages = readPages()
const blocks = pages.flatMap(findBlocks)

describe('code in the docs', () => {
  const snippets = blocks.filter(({ snippet }) => snippet !== undefined)
  const typescript = blocks.filter(({ snippet, language }) => snippet === undefined && language === 'ts')

  it('has snippets that equal the regions they are cut from', () => {
    expect(snippets.length).toBeGreaterThan(0)
    for (const { page, line, code, snippet = '' } of snippets) {
      const [file = '', region = ''] = snippet.split('#')
      const source = existsSync(root + file) ? readFileSync(root + file, 'utf8') : ''
      expect(code, `${page}:${line} is to show ${snippet}`).toBe(cutRegion(source, region))
    }
  })

  it('type-checks wherever it is TypeScript', { timeout: 120_000 }, () => {
    expect(typescript.length).toBeGreaterThan(0)
    const canary: Block = {
      page: 'canary',
      line: 1,
      language: 'ts',
      code: `const n: number = 'text'`,
      snippet: undefined,
    }
    const mistakes = typeCheck([...typescript, canary])
    expect(
      mistakes.filter((line) => line.startsWith('canary')),
      'the compiler did not read the blocks',
    ).toHaveLength(1)
    expect(mistakes.filter((line) => !line.startsWith('canary'))).toEqual([])
  })
})

const allPromises = tableBelow(readPage('docs/concepts/guarantees.md'), 'The table')

describe('the README', () => {
  const readme = readPage('README.md')
  const promises = tableBelow(readme, 'Guarantees')

  it('has a test behind every promise', () => {
    expect(promises.length).toBeGreaterThan(0)
    const missing = [...promises, ...allPromises].filter((row) => !existsSync(root + testFileIn(row)))
    expect(missing.map(([promise]) => promise)).toEqual([])
  })

  it('makes no promise that the page about guarantees does not make in the same words', () => {
    const withoutLinks = (rows: string[][]) => rows.map((row) => [...row.slice(0, 2), testFileIn(row)].join(' | '))
    expect(withoutLinks(allPromises)).toEqual(expect.arrayContaining(withoutLinks(promises)))
  })
})

describe('the page about guarantees', () => {
  it('has a promise for every test of a guarantee', () => {
    const tests = readdirSync(`${root}test/guarantees`).filter((name) => name.endsWith('.test.ts'))
    const promised = new Set(allPromises.map(testFileIn))
    expect(tests.map((name) => `test/guarantees/${name}`).sort()).toEqual([...promised].sort())
  })

  it('shows the same picture of the flow as the map of src/', () => {
    const picture = (path: string) => findBlocks(readPage(path)).find(({ language }) => language === 'text')?.code
    expect(picture('README.md')).toBeDefined()
    expect(picture('README.md')).toBe(picture('src/README.md'))
  })
})

describe('the reference', () => {
  it('has a section for every error code, and no other', () => {
    expect(headings(readPage('docs/reference/errors.md'), 3).sort()).toEqual([...ERROR_CODES].sort())
  })
})

describe('finding the way', () => {
  it('has no link to a page or a heading that does not exist', () => {
    const links = pages.flatMap((page) => localLinks(page).map((target) => ({ page, target })))
    expect(links.length).toBeGreaterThan(0)
    const broken = links.filter(({ page, target }) => {
      const [file = '', anchor] = target.split('#')
      const path = file === '' ? page.path : posix.join(posix.dirname(page.path), file)
      if (!existsSync(root + path)) return true
      return anchor !== undefined && !anchors(readPage(path)).has(anchor)
    })
    expect(broken.map(({ page, target }) => `${page.path} → ${target}`)).toEqual([])
  })

  it('reaches every page of docs/ from its index', () => {
    expect(missingFrom('docs/README.md', (path) => path.startsWith('docs/') && !isDecision(path))).toEqual([])
  })

  it('reaches every decision from the index of decisions', () => {
    expect(missingFrom('docs/decisions/README.md', isDecision)).toEqual([])
  })
})

function isDecision(path: string): boolean {
  return /^docs\/decisions\/\d{4}-/.test(path)
}

function missingFrom(index: string, wanted: (path: string) => boolean): string[] {
  const linked = localLinks(readPage(index)).map((target) =>
    posix.join(posix.dirname(index), target.split('#')[0] ?? ''),
  )
  return pages.map(({ path }) => path).filter((path) => wanted(path) && path !== index && !linked.includes(path))
}

/** The last cell of a row of promises: a link to, or the name of, a file in test/guarantees. */
function testFileIn(row: string[]): string {
  return `test/guarantees/${/[\w.-]+\.test\.ts/.exec(row.at(-1) ?? '')?.[0] ?? 'nothing named'}`
}

/**
 * Compiles all blocks in one run and gives the mistakes found in them. Each block becomes a file named after its page,
 * moved down by blank lines, so that a line in a message is the line of the page.
 */
function typeCheck(all: Block[]): string[] {
  const folder = `${root}node_modules/.cache/aftercommit/docs/`
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const { page, line, code } of all) {
    writeFileSync(`${folder}${page.replaceAll('/', '~')}.${line}.mts`, '\n'.repeat(line) + code)
  }
  const paths = {
    aftercommit: [`${root}src/index.ts`],
    'aftercommit/console': [`${root}src/console/index.ts`],
    'aftercommit/client': [`${root}src/client/index.ts`],
    'aftercommit/redis': [`${root}src/adapters/redis/index.ts`],
    'aftercommit/testing': [`${root}src/testing/index.ts`],
    'aftercommit-embedded': [`${root}embedded/src/index.ts`],
  }
  const compilerOptions = { noEmit: true, allowImportingTsExtensions: true, moduleDetection: 'force', paths }
  writeFileSync(
    `${folder}tsconfig.json`,
    JSON.stringify({ extends: `${root}tsconfig.base.json`, compilerOptions, include: ['*.mts'] }),
  )
  const tsc = `${root}node_modules/@typescript/native/bin/tsc`
  const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], {
    cwd: folder,
    encoding: 'utf8',
  })
  const mistakes = stdout.split('\n').filter((line) => /^[^\s/]+\.mts\(\d+,\d+\): error/.test(line))
  rmSync(folder, { recursive: true, force: true })
  return mistakes.map((line) => line.replaceAll('~', '/').replace(/\.\d+\.mts\((\d+),(\d+)\)/, ':$1:$2'))
}
