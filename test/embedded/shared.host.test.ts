import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmbedded } from 'aftercommit-embedded'
import { afterAll, describe, expect, it } from 'vitest'
import { isLinux, isRunning, makePlayground, query } from './support.ts'

const playground = makePlayground()
afterAll(() => playground.clear())

describe('one process', () => {
  it('that starts the same folder twice has one server, which lives until the second handle is stopped', async () => {
    const dataDir = playground.dataDir('twice')
    const [a, b] = await Promise.all([startEmbedded({ dataDir }), startEmbedded({ dataDir })])
    expect(a.pid).toBe(b.pid)
    expect([a.adopted, b.adopted].sort()).toEqual([false, true])
    await a.stop()
    await a.stop()
    expect(await query(b.url, 'select 1 as one')).toEqual([{ one: 1 }])
    await b.stop()
    expect(isRunning(b.pid)).toBe(false)
  })

  it('may spell the folder differently', async () => {
    const dataDir = playground.dataDir('spelling')
    const a = await startEmbedded({ dataDir })
    const b = await startEmbedded({ dataDir: `${dataDir}/../spelling/` })
    expect(b.pid).toBe(a.pid)
    await Promise.all([a.stop(), b.stop()])
    expect(isRunning(a.pid)).toBe(false)
  })
})

describe('several processes', () => {
  it.each([2, 10])('starting an empty folder at once get one server: %i of them', async (count) => {
    const dataDir = playground.dataDir(`crowd-${count}`)
    const children = Array.from({ length: count }, () => playground.child({ dataDir }))
    const reports = await Promise.all(children.map((child) => child.until('up')))
    expect(new Set(reports.map((report) => report.pid)).size).toBe(1)
    expect(reports.filter((report) => !report.adopted)).toHaveLength(1)
    const url = reports[0]!.url
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])

    const last = children.pop()!
    await Promise.all(children.map((child) => child.stop()))
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
    await last.stop()
    expect(isRunning(reports[0]!.pid)).toBe(false)
  })

  it('can stop and start in any order, and whoever has a handle has a server', async () => {
    const dataDir = playground.dataDir('churn')
    const run = async () => {
      for (let round = 0; round < 8; round++) {
        const server = await startEmbedded({ dataDir })
        expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }])
        await server.stop()
      }
    }
    const children = Array.from({ length: 3 }, async () => {
      const child = playground.child({ dataDir })
      const { url } = await child.until('up')
      expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }])
      await child.stop()
    })
    await Promise.all([run(), run(), ...children])
  })
})

describe('the application', () => {
  it('ends by itself although the server goes on, and the next start adopts that server', async () => {
    const dataDir = playground.dataDir('leaves')
    const child = playground.child({ dataDir, leave: true })
    const up = await child.until('up')
    await child.ended()
    expect(child.process.exitCode).toBe(0)
    expect(await query(up.url, 'select 1 as one')).toEqual([{ one: 1 }])
    const server = await startEmbedded({ dataDir })
    expect(server).toMatchObject({ adopted: true, pid: up.pid, version: up.version })
    await server.stop()
    expect(isRunning(up.pid)).toBe(false)
  })

  it.runIf(isLinux)('gets Ctrl-C alone: the server has a process group of its own', async () => {
    const dataDir = playground.dataDir('group')
    const child = playground.child({ dataDir })
    const up = await child.until('up')
    const stat = readFileSync(`/proc/${up.pid}/stat`, 'utf8')
    // After the name in parentheses: state, parent, process group.
    const [, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    expect(group).toBe(String(up.pid))
    await child.stop()
  })

  it('has the output of the server in a file and not on its own terminal', async () => {
    const dataDir = playground.dataDir('output')
    const server = await startEmbedded({ dataDir })
    await query(server.url, 'select no_such_column').catch(() => undefined)
    await server.stop()
    expect(readFileSync(join(dataDir, 'postgres/postgres.log'), 'utf8')).toContain('no_such_column')
  })
})
