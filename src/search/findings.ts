/** What `doctor` says about the indexes of this database. The judging is pure: facts in, findings out. */
import { AftercommitError } from '../errors.ts'
import { type Finding, ok, type Queryable } from '../postgres/index.ts'
import { checkLanguage } from './language.ts'
import { type IndexRow, selectIndexes } from './query-statements.ts'

export async function diagnoseIndexes(db: Queryable, language: string): Promise<Finding[]> {
  const unknown = await checkLanguage(db, language).then(
    () => undefined,
    (error) => {
      if (error instanceof AftercommitError && error.code === 'BAD_OPTION') return error.message
      throw error
    },
  )
  if (unknown !== undefined) {
    const fix = 'Correct language under [providers.search]'
    return [{ level: 'problem', check: 'search', message: unknown, fix }]
  }
  return indexFindings(await selectIndexes(db), language)
}

export function indexFindings(indexes: readonly Pick<IndexRow, 'name' | 'language'>[], language: string): Finding[] {
  const others = indexes.filter((index) => index.language !== language)
  if (others.length === 0) return [ok('search', `${indexes.length} indexes in this database`)]
  return others.map(({ name, language: built }) => ({
    level: 'warning',
    check: 'search',
    message: `The index ${JSON.stringify(name)} was made with "${built}", and the file says "${language}".`,
    fix: `aftercommit search reindex '${name.replaceAll("'", `'\\''`)}'`,
  }))
}
