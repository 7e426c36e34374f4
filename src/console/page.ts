/** The page's own files: a shell without data, its script and its style. They are public, so links from alerts open. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Refusal, SECURITY_HEADERS } from './answers.ts'

const FOLDER = fileURLToPath(new URL('./app/', import.meta.url))
/** From the source and from the bundle, both two folders deep. */
const BUILT = fileURLToPath(new URL('../../dist/console/app/', import.meta.url))

const TYPES: Readonly<Record<string, string>> = {
  'app.js': 'text/javascript; charset=utf-8',
  'app.css': 'text/css; charset=utf-8',
  'mark.svg': 'image/svg+xml',
}

export function createPage(path: string): (request: Request, rest: string) => Response {
  const files = new Map<string, { readonly body: Buffer; readonly tag: string }>()
  const folder = existsSync(`${FOLDER}app.js`) ? FOLDER : BUILT

  function file(name: string) {
    const known = files.get(name)
    if (known) return known
    if (!existsSync(`${folder}${name}`)) {
      throw new Refusal(503, 'NOT_BUILT', 'The page of the console is not built. Run: npm run build')
    }
    const body = readFileSync(`${folder}${name}`)
    const read = { body, tag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` }
    files.set(name, read)
    return read
  }

  return (request, rest) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new Refusal(405, 'NOT_ALLOWED', 'Pages are only read.')
    const type = TYPES[rest]
    if (type === undefined) {
      if (/\.\w+$/.test(rest)) throw new Refusal(404, 'NOT_FOUND', 'There is no such file.')
      // Every address below the path is a view of the same page.
      return send(shell(path), 'text/html; charset=utf-8', { 'cache-control': 'no-store' })
    }
    const { body, tag } = file(rest)
    const headers = { etag: tag, 'cache-control': 'no-cache' }
    if (request.headers.get('if-none-match') === tag)
      return new Response(null, { status: 304, headers: { ...SECURITY_HEADERS, ...headers } })
    return send(body, type, headers)
  }
}

function send(body: string | Buffer, type: string, headers: Record<string, string>): Response {
  return new Response(typeof body === 'string' ? body : new Uint8Array(body), {
    headers: { ...SECURITY_HEADERS, 'content-type': type, ...headers },
  })
}

function shell(path: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>aftercommit</title>
<base href="${path}">
<link rel="icon" href="mark.svg">
<link rel="stylesheet" href="app.css">
<script type="module" src="app.js"></script>
</head>
<body><div id="app"></div><noscript>The console needs JavaScript.</noscript></body>
</html>
`
}
