/**
 * npm packages cannot hold symbolic links, so the binaries arrive without the short library names they look for
 * (libicuuc.so.60 beside libicuuc.so.60.2). An install script would make the links, but install scripts are blocked in
 * more and more places: the launcher lays them itself, from the list that comes with the package.
 */
import { lstat, mkdir, readFile, rm, symlink } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'

interface Link {
  /** Both are relative to native/lib. */
  readonly file: string
  readonly name: string
}

/** Lays the library links of a native folder into another folder, replacing what is there. */
export async function layLinks(native: string, into: string): Promise<number> {
  const lib = join(native, 'lib')
  const links = await readLinks(native)
  for (const { file, name } of links) {
    const at = join(into, name)
    await mkdir(dirname(at), { recursive: true })
    await rm(at, { force: true })
    const target = join(lib, file)
    // Inside the library folder itself the link is relative, so that the whole folder can be moved.
    await symlink(into === lib ? relative(dirname(at), target) : target, at)
  }
  return links.length
}

/** Whether an install script has already laid the links. */
export async function hasLinks(native: string): Promise<boolean> {
  for (const { name } of await readLinks(native)) {
    if (!(await lstat(join(native, 'lib', name)).catch(() => undefined))) return false
  }
  return true
}

async function readLinks(native: string): Promise<Link[]> {
  const text = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '[]' // Windows needs no links
    throw error
  })
  return parseLinks(text)
}

/** Reads the list. Entries that point out of native/lib are left out: nothing there should, and nothing may. */
export function parseLinks(text: string): Link[] {
  const entries = JSON.parse(text) as { source?: unknown; target?: unknown }[]
  return entries.flatMap(({ source, target }) => {
    const [file, name] = [insideLib(source), insideLib(target)]
    return file === undefined || name === undefined ? [] : [{ file, name }]
  })
}

function insideLib(path: unknown): string | undefined {
  if (typeof path !== 'string') return undefined
  const inside = relative(join('native', 'lib'), path.replaceAll('/', sep))
  return inside === '' || inside.startsWith('..') ? undefined : inside
}
