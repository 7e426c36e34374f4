import { afterTimeout, type FilteredPage, type PageFilter, type Tailer } from '../log/index.ts'
import { SQLSTATE, sqlstateOf } from '../postgres/index.ts'

/** One page of the log. A page that takes longer than the server allows is asked for in smaller pieces. */
export async function readPage(
  tailer: Pick<Tailer, 'readFiltered'>,
  after: bigint,
  limit: number,
  filter: PageFilter,
): Promise<FilteredPage> {
  for (let { window } = filter; ; ) {
    try {
      return await tailer.readFiltered(after, limit, { ...filter, window })
    } catch (error) {
      const narrower = sqlstateOf(error) === SQLSTATE.queryCanceled ? afterTimeout(window) : undefined
      if (narrower === undefined) throw error
      window = narrower
    }
  }
}
