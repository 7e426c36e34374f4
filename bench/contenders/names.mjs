/** What the contenders of journeys are called, in figures too. */
export const OURS = 'aftercommit'
export const OURS_JIT_OFF = 'aftercommit, jit off'
export const GRAPHILE = 'graphile-worker'
export const POSTS = 'the same POSTs without a queue'
export const DBOS = 'DBOS'
export const BARE_SQL = 'the same rows by bare SQL'
export const BARE_PAGES = 'bare pages'
