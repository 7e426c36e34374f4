/** The live order screen of the demo shop, as a browser asks for it: page, code, orders so far, and the feed. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { buildPackage } from './support/build.ts'
import { eventually } from './support/eventually.ts'
import { spawnScript } from './support/processes.ts'

const SHOP = fileURLToPath(new URL('../examples/shop/index.mjs', import.meta.url))

beforeAll(buildPackage)

it('serves a page that shows orders as they are placed, and ends in good order while it is open', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'aftercommit-shop-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const shop = spawnScript(SHOP, [], { AFTERCOMMIT_DATA_DIR: dataDir, SHOP_PORT: '0', CONSOLE_PORT: '0' })
  const line = await shop.waitForLine('live order screen: ', 60_000)
  const url = /http:\S+/.exec(line)![0]

  const page = await fetch(url)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'self'")
  for (const [, asset] of (await page.text()).matchAll(/(?:href|src)="(\/[^"]+)"/g)) {
    expect((await fetch(new URL(asset!, url))).status, asset).toBe(200)
  }
  expect((await fetch(new URL('/client/index.js', url))).status).toBe(200)
  for (const wrong of ['/web/../index.mjs', '/client/%2e%2e/index.js', '/.env', '/web/orders.html']) {
    expect((await fetch(new URL(wrong, url))).status, wrong).toBe(404)
  }

  const board = /http:\S+/.exec(await shop.waitForLine('console: ', 60_000))![0]
  expect(await (await fetch(`${board}/api/overview`)).json()).toMatchObject({ sentence: expect.any(String) })

  const feed = (await fetch(new URL('/live', url))).body!.pipeThrough(new TextDecoderStream()).getReader()
  let heard = ''
  while (!heard.includes('order.placed')) heard += (await feed.read()).value
  const ask = async (path: string) => (await fetch(new URL(path, url))).json()
  const orders = async (words = '') => (await ask(`/orders?q=${words}`)) as { customer: string }[]
  const { customer } = await eventually(async () => (await orders())[0])
  // By a rule of its file: the order becomes a document that is found by the name of its customer.
  await eventually(async () => (await orders(customer)).length > 0)
  expect(await orders('nobody')).toEqual([])
  expect(await ask('/sales')).toMatchObject({ orders: expect.any(Number) })
  shop.kill('SIGTERM')
  expect(await shop.exited).toEqual({ code: 0, signal: null })
})
