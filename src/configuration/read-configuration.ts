/**
 * Reads aftercommit.toml and the files it includes into one table of plain data, with the place of every key and value.
 * What cannot be read at all is thrown here; whether the data makes sense is for others to say, with `locate` to point.
 */
import { type ConfigurationSource, loadFiles } from './load-files.ts'
import { locateAll } from './locate.ts'
import { mergeFiles } from './merge.ts'
import { ConfigError, type Found, type Mistake } from './mistake.ts'
import type { Table } from './toml-file.ts'

export interface ReadConfiguration {
  readonly data: Table
  /** Every file that was read, the first one first: what to watch for changes. */
  readonly files: readonly string[]
  /** Puts places to what was found, in the order of the files. */
  locate(found: readonly Found[]): Mistake[]
}

/** Throws ConfigError. */
export async function readConfiguration(source: ConfigurationSource): Promise<ReadConfiguration> {
  const { files, mistakes } = await loadFiles(source)
  if (mistakes.length > 0) throw new ConfigError(mistakes)
  const merged = mergeFiles(files)
  const found = [...merged.twice, ...files.flatMap((file) => file.found.map((one) => ({ found: one, file })))]
  const located = found.flatMap((one) => locateAll([one.found], one.file.places, one.file))
  if (located.length > 0) throw new ConfigError(located)
  return {
    data: merged.data,
    files: files.map(({ name }) => name),
    locate: (found) => locateAll(found, merged.places, files[0]!),
  }
}
