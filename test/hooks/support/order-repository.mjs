// A repository over Postgres as an application might have one: plain SQL through pg. `afterWrite` runs between the write
// and whatever comes next in the transaction.
const COLUMNS = 'id, total, note'

export function orderRepository(pool, { afterWrite = async () => {} } = {}) {
  const bound = (db) => ({
    async get(id) {
      return (await db.query(`select ${COLUMNS} from orders where id = $1`, [id])).rows[0] ?? null
    },
    async getForUpdate(id) {
      return (await db.query(`select ${COLUMNS} from orders where id = $1 for update`, [id])).rows[0] ?? null
    },
    async create({ id, total, note = null }) {
      const { rows } = await db.query(`insert into orders values ($1, $2, $3) returning ${COLUMNS}`, [id, total, note])
      await afterWrite('create')
      return rows[0]
    },
    async update(id, { total, note = null }) {
      const text = `update orders set total = $2, note = $3 where id = $1 returning ${COLUMNS}`
      return (await db.query(text, [id, total, note])).rows[0] ?? null
    },
    async delete(id) {
      return (await db.query('delete from orders where id = $1', [id])).rowCount
    },
    async createMany(rows) {
      const created = []
      for (const row of rows) created.push(await this.create(row))
      return created
    },
    async updateMany(items) {
      for (const { id, ...changes } of items) await this.update(id, changes)
    },
    async deleteMany(ids) {
      return (await db.query('delete from orders where id = any($1)', [ids])).rowCount
    },
    async total() {
      return Number((await db.query('select sum(total) as sum from orders')).rows[0].sum)
    },
  })
  return {
    ...bound(pool),
    async transaction(fn) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const result = await fn(bound(client), client)
        await client.query('commit')
        return result
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
  }
}
