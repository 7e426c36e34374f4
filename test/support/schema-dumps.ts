/** The dumps of test/schemas, one for each version of sql/version. */
import { readdirSync, readFileSync } from 'node:fs'

const FOLDER = new URL('../schemas/', import.meta.url)

export interface SchemaDump {
  readonly version: number
  /** The release that wrote it. */
  readonly release: string
  readonly script: string
}

/** In order; the last one is that of this build. */
export function schemaDumps(): SchemaDump[] {
  return readdirSync(FOLDER)
    .sort()
    .map((name) => {
      const [, heading = '', script = ''] = /^(.*)\n([\s\S]*)$/.exec(readFileSync(new URL(name, FOLDER), 'utf8')) ?? []
      const release = /^-- The schema of aftercommit (\S+), written by npm run schema\.$/.exec(heading)?.[1] ?? ''
      return { version: Number.parseInt(name, 10), release, script }
    })
}
