import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Just enough Markdown for the checks of docs.test.ts: pages, fenced blocks, headings, links and tables. */
export const root = fileURLToPath(new URL('../', import.meta.url))

export interface Page {
  /** Path from the root of the repository. */
  path: string
  text: string
}

export interface Block {
  page: string
  /** Line of the opening fence, counted from 1. */
  line: number
  language: string
  code: string
  /** `path#region`, when a snippet comment stands right above the fence. */
  snippet: string | undefined
}

export function readPage(path: string): Page {
  return { path, text: readFileSync(root + path, 'utf8') }
}

/** Every page a reader may open: those at the root, those of docs/, and the README of each workspace. */
export function readPages(): Page[] {
  const docs = readdirSync(`${root}docs`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path.replaceAll('\\', '/')}`)
  const others = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'src/README.md', 'embedded/README.md']
  return [...others.filter((path) => existsSync(root + path)), ...docs.sort()].map(readPage)
}

export function findBlocks({ path, text }: Page): Block[] {
  const blocks: Block[] = []
  const lines = text.split('\n')
  let open: { line: number; fence: string; language: string; snippet: string | undefined } | undefined
  for (const [index, line] of lines.entries()) {
    const fence = /^(`{3,})(\S*)/.exec(line)
    if (open === undefined && fence !== null) {
      const comment = /^<!-- snippet: (\S+) -->$/.exec(lines[index - 1] ?? '')
      open = { line: index + 1, fence: fence[1] ?? '', language: fence[2] ?? '', snippet: comment?.[1] }
    } else if (open !== undefined && line === open.fence) {
      const code = lines.slice(open.line, index).join('\n')
      blocks.push({ page: path, line: open.line, language: open.language, code, snippet: open.snippet })
      open = undefined
    }
  }
  return blocks
}

/** The text between `// #region name` and the `// #endregion` that follows, without its common indent. */
export function cutRegion(source: string, name: string): string | undefined {
  const lines = source.split('\n')
  const start = lines.findIndex((line) => line.trim() === `// #region ${name}`)
  const length = lines.slice(start + 1).findIndex((line) => line.trim() === '// #endregion')
  if (start === -1 || length === -1) return undefined
  const region = lines.slice(start + 1, start + 1 + length)
  const indents = region.filter((line) => line.trim() !== '').map((line) => line.search(/\S/))
  return region.map((line) => line.slice(Math.min(...indents))).join('\n')
}

export function headings({ text }: Page, level: number): string[] {
  const opening = `${'#'.repeat(level)} `
  return withoutBlocks(text)
    .filter((line) => line.startsWith(opening))
    .map((line) => line.slice(opening.length).trim())
}

/** Names that `#…` links of a page may use, made from its headings the way Git hosts make them. */
export function anchors({ text }: Page): Set<string> {
  const titles = withoutBlocks(text).filter((line) => /^#{1,6} /.test(line))
  return new Set(titles.map((line) => toAnchor(line.replace(/^#+ /, ''))))
}

/** Targets of links inside the repository. */
export function localLinks({ text }: Page): string[] {
  const prose = withoutBlocks(text)
    .join('\n')
    .replace(/`[^`\n]*`/g, '')
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  return targets.filter((target) => !/^[a-z]+:/.test(target))
}

/** Cells of the rows of the table below a heading, header and ruler left out. */
export function tableBelow({ text }: Page, heading: string): string[][] {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, '').trim() === heading)
  const rest = start === -1 ? [] : lines.slice(start + 1)
  const first = rest.findIndex((line) => line.startsWith('|'))
  const table = first === -1 ? [] : rest.slice(first)
  const end = table.findIndex((line) => !line.startsWith('|'))
  const rows = (end === -1 ? table : table.slice(0, end)).slice(2)
  return rows.map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

function withoutBlocks(text: string): string[] {
  let inside = false
  return text.split('\n').filter((line) => {
    const isFence = line.startsWith('```')
    if (isFence) inside = !inside
    return !inside && !isFence
  })
}

function toAnchor(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
}
