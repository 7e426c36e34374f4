/**
 * `npm run build`: migrations into TypeScript, TypeScript into dist/ of both packages, and dist/ of aftercommit into the few files
 * of lib/, which users load. Node opens all files of a program at once, and hundreds of them are more than some limits allow.
 *
 * Does nothing when no input changed since the last build that succeeded, so that `npm start` may always call it, and
 * several tests at once: one builds, the others wait for it. The
 * stamp lies outside of what is published, and is believed only while every file it names is still there.
 */
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { lock } from './lock.mjs'
import { root, run, runTool, seconds } from './steps.mjs'

// embedded/ comes first: the types of its dist/ are what src/ sees of it.
const packages = [
  { name: 'aftercommit-embedded', project: 'embedded/tsconfig.json', source: 'embedded/src', out: 'embedded/dist' },
  { name: 'aftercommit', project: 'tsconfig.build.json', source: 'src', out: 'dist' },
]
const generated = 'src/postgres/migrations.generated.ts'
const command = 'lib/cli/main.js'
const BROWSER = 'client/index'
const stampFile = 'node_modules/.cache/aftercommit/build.json'
const lockFile = 'node_modules/.cache/aftercommit/build.lock'

const say = process.argv.includes('--quiet') ? () => {} : (line) => console.log(line)
const started = performance.now()
const inputs = hashInputs()
if (isUpToDate(inputs)) {
  say('build: up to date')
} else {
  await lock(join(root, lockFile))
  if (isUpToDate(inputs)) {
    say('build: another process has just built this')
    process.exit(0)
  }
  rmSync(join(root, stampFile), { force: true })
  await step('embed migrations', () => run(process.execPath, ['scripts/embed-migrations.mjs']))
  for (const { name, project, source, out } of packages) {
    removeStale(source, out)
    await step(name, () => runTool('tsc', ['-p', project]))
  }
  await step('page of the console', () => run(process.execPath, ['scripts/build-console.mjs']))
  await step('bundle', bundle)
  if (existsSync(join(root, command))) chmodSync(join(root, command), 0o755)
  writeStamp(inputs)
  say(`build: done in ${seconds(started)}`)
}

/** Each entry of package.json as one file of lib/, beside the chunks that they share or load later. */
async function bundle() {
  const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const entries = [...Object.values(exports).map((entry) => entry.default), bin.aftercommit].filter(Boolean)
  const names = entries.map((path) => path.replace(/^(\.\/)?lib\/|\.js$/g, '')).filter((name) => name !== BROWSER)
  rmSync(join(root, 'lib'), { recursive: true, force: true })
  const { rolldown } = await import('rolldown')
  const program = await rolldown({
    cwd: root,
    input: Object.fromEntries(names.map((name) => [name, `dist/${name}.js`])),
    platform: 'node',
    external: (id) => !/^[./]/.test(id) && !id.startsWith('dist/'),
    treeshake: false,
  })
  await program.write({ dir: join(root, 'lib'), entryFileNames: '[name].js', chunkFileNames: 'chunks/[name].js' })
  // A page serves this one file as it is, so it stands alone.
  const client = await rolldown({ cwd: root, input: `dist/${BROWSER}.js`, platform: 'browser' })
  await client.write({ file: join(root, `lib/${BROWSER}.js`), format: 'esm' })
  return 0
}

async function step(name, work) {
  say(`build: ${name}`)
  const code = await work()
  if (code === 0) return
  console.error(`build: ${name} failed, see above. dist/ may be half written; run the build again once it is fixed.`)
  process.exit(1)
}

function hashInputs() {
  const files = [
    ...packages.flatMap(({ source, project }) => [...listFiles(source), project]),
    ...listFiles('migrations'),
    ...listFiles('sql'),
    ...listFiles('web-console'),
    'scripts/build-console.mjs',
    'scripts/build.mjs',
    'scripts/embed-migrations.mjs',
    'node_modules/rolldown/package.json',
    'tsconfig.base.json',
    'package.json',
    'embedded/package.json',
    'node_modules/@typescript/native/package.json',
  ].filter((file) => file !== generated)
  const hash = createHash('sha256')
  for (const file of files.sort()) {
    const content = readFileSync(join(root, file))
    hash.update(`${file}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

function isUpToDate(hash) {
  if (!existsSync(join(root, stampFile))) return false
  const stamp = JSON.parse(readFileSync(join(root, stampFile), 'utf8'))
  return stamp.inputs === hash && stamp.outputs.every((file) => existsSync(join(root, file)))
}

function writeStamp(hash) {
  const outputs = [...packages.flatMap(({ out }) => listFiles(out)), ...listFiles('lib'), generated]
  mkdirSync(dirname(join(root, stampFile)), { recursive: true })
  writeFileSync(join(root, stampFile), JSON.stringify({ inputs: hash, outputs }))
}

/** tsc never deletes: what a renamed or removed source left in dist/ would be published for ever. */
function removeStale(source, out) {
  for (const file of listFiles(out)) {
    const origin = file.slice(out.length).replace(/\.(js|js\.map|d\.ts)$/, '.ts')
    if (existsSync(join(root, source + origin))) continue
    rmSync(join(root, file))
    say(`build: removed ${file}, its source is gone`)
  }
}

/** Files below a folder as paths from the root; none when the folder is missing. */
function listFiles(folder) {
  if (!existsSync(join(root, folder))) return []
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    return entry.isDirectory() ? listFiles(path) : [path]
  })
}
