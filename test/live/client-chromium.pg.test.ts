/** The built client in a real browser that is put to sleep and cut off while events are written. */
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { findProgram } from '../../scripts/programs.mjs'
import { emitMany, numbered } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { connect, testDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { spawnScript } from '../support/processes.ts'
import { hasProgram } from '../support/programs.ts'

describe.runIf(hasProgram('chromium', 'the client in a browser'))('in Chromium', () => {
  beforeAll(buildPackage)

  it('a page that slept without a network has every event once, in order, when it is awake again', async () => {
    const { page, sql } = await openPage()
    await follow(page)
    await emitMany(sql, 50)
    await eventually(async () => (await idsOn(page)).length === 50)

    const devtools = await page.context().newCDPSession(page)
    await page.context().setOffline(true)
    await devtools.send('Page.setWebLifecycleState', { state: 'frozen' })
    await emitMany(sql, 700, { prefix: 'asleep-' })
    await devtools.send('Page.setWebLifecycleState', { state: 'active' })
    await page.context().setOffline(false)
    await emitMany(sql, 50, { prefix: 'awake-' })
    await eventually(async () => (await idsOn(page)).includes('awake-50'), { deadline: 60_000 })
    expect(await idsOn(page)).toEqual([...numbered(50), ...numbered(700, 'asleep-'), ...numbered(50, 'awake-')])
    expect(await page.evaluate('window.states')).toContain('waiting')
  })

  it('a page that is loaded again goes on after the last event it had dealt with', async () => {
    const { page, sql } = await openPage()
    await follow(page)
    await emitMany(sql, 20)
    await eventually(async () => (await idsOn(page)).length === 20)
    const token = await eventually(() =>
      page.evaluate<string | null>('localStorage.getItem("feed")').then((kept) => kept ?? undefined),
    )
    expect(token).toMatch(/^\d+\.20$/)
    await page.goto('about:blank')
    await emitMany(sql, 5, { prefix: 'away-' })
    await page.goBack()
    await follow(page)
    await emitMany(sql, 5, { prefix: 'back-' })
    await eventually(async () => (await idsOn(page)).includes('back-5'))
    expect(await idsOn(page)).toEqual([...numbered(5, 'away-'), ...numbered(5, 'back-')])
  })
})

async function openPage(): Promise<{ page: Page; sql: Awaited<ReturnType<typeof connect>> }> {
  const { url } = await testDatabase({ migrated: true })
  const server = spawnScript(fileURLToPath(new URL('sse-server.mjs', import.meta.url)), [url, '0'])
  const line = await server.waitForLine('listening on')
  const browser: Browser = await chromium.launch({ executablePath: findProgram('chromium')!, args: ['--no-sandbox'] })
  onTestFinished(() => browser.close())
  const page = await (await browser.newContext()).newPage()
  await page.goto(`http://127.0.0.1:${line.split(' ').at(-1)}/`)
  return { page, sql: await connect(url) }
}

async function follow(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    const { connect } = await import('/client/index.js')
    window.ids = []
    window.states = []
    window.connection = connect({
      url: '/feed',
      headers: { authorization: 'Bearer of news' },
      storage: localStorage,
      storageKey: 'feed',
      silenceMs: 2_000,
      onEvent: ({ id }) => window.ids.push(id),
      onResync: () => window.ids.push('resync'),
      onState: (state) => window.states.push(state),
    })
  })()`)
  await eventually(() =>
    page.evaluate<boolean>('window.connection.state === "open" && window.connection.token !== undefined'),
  )
}

function idsOn(page: Page): Promise<string[]> {
  return page.evaluate<string[]>('window.ids')
}
