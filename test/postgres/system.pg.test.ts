/** The second kind of server is the one that most users run: it compiles plans that it takes for dear. */
import { expect, it } from 'vitest'
import { connect, hasSystemPostgres, testDatabase } from '../support/database.ts'

it.runIf(hasSystemPostgres())(
  'The PostgreSQL of the system has JIT on and the settings of its distribution',
  async () => {
    const { url } = await testDatabase({ major: 'system', migrated: true })
    const sql = await connect(url)
    const { rows } = await sql.query(`select pg_jit_available() as jit, current_setting('shared_buffers') as buffers`)
    expect(rows).toEqual([{ jit: true, buffers: '128MB' }])
  },
)
