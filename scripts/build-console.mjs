/** Makes the page of the console: one script, one style and the mark, in dist/console/app/. Nothing is fetched at run time. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { root } from './steps.mjs'

const source = join(root, 'web-console')
const out = join(root, 'dist/console/app')

mkdirSync(out, { recursive: true })
const bundle = await rolldown({
  input: join(source, 'src/main.tsx'),
  platform: 'browser',
  tsconfig: false,
  transform: { jsx: { runtime: 'automatic', importSource: 'preact' }, target: 'es2022' },
})
await bundle.write({ file: join(out, 'app.js'), format: 'esm', minify: true, comments: { legal: false } })
await bundle.close()

const css = ['tokens.css', 'console.css', 'extra.css'].map((name) => readFileSync(join(source, 'css', name), 'utf8'))
writeFileSync(join(out, 'app.css'), shrink(css.join('\n')))
writeFileSync(join(out, 'mark.svg'), readFileSync(join(source, 'mark.svg')))

/** Comments and the white space of lines go; what is inside of quotes has neither. */
function shrink(text) {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s+/gm, '')
    .replace(/\n+/g, '\n')
}
