/** A real Chromium on the console of a real instance: what an operator does, and what axe finds. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { findProgram } from '../../scripts/programs.mjs'
import { serveConsole } from '../../src/console/index.ts'
import { GiveUp } from '../../src/index.ts'
import { openSubscriptions } from '../subscriptions/support/open-subscriptions.ts'
import { buildPackage } from '../support/build.ts'
import { eventually } from '../support/eventually.ts'
import { hasProgram } from '../support/programs.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

describe.runIf(hasProgram('chromium', 'the console in a browser'))('the console in Chromium', () => {
  let browser: Browser
  beforeAll(async () => {
    await buildPackage()
    browser = await chromium.launch({
      executablePath: findProgram('chromium')!,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
    })
  })
  afterAll(() => browser?.close())

  async function openPage(options: { width?: number; dark?: boolean; token?: string } = {}) {
    const opened = await openSubscriptions()
    const { width = 1440, dark = false, token } = options
    const served = await serveConsole(opened.ac, { port: 0, ...(token !== undefined && { token }) })
    const page = await browser.newPage({
      viewport: { width, height: 900 },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
    })
    const errors: string[] = []
    page.on('pageerror', (error) => errors.push(String(error)))
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    onTestFinished(async () => {
      await page.close()
      await served.close()
    })
    return { ...opened, page, errors, ...handsOn(page), go: (path = '') => page.goto(`${served.url}/${path}`) }
  }

  it('shows an order as it arrives, opens its receipt, and redrives what died of one cause', async () => {
    const { ac, emit, errors, go, see, click, fill } = await openPage()
    let isBroken = true
    ac.subscribe({
      id: 'courier',
      on: ['lamp.*'],
      retry: { maxAttempts: 1 },
      handle: () => {
        if (isBroken) throw new GiveUp('the courier is out')
      },
    })
    await ac.start()
    await go('events')
    await see('No event was committed yet')
    await emit('order-1', { key: '1' })
    await click('lamp.lit')
    await see('courier is a dead letter.')
    await see('npx aftercommit dlq redrive')

    await emit('order-2', { key: '2' })
    await eventually(async () => (await ac.deadLetters.count()) === 2)
    await go()
    await see('2 dead letters, all of one cause')
    await click('Look at causes')
    await click('courier: GiveUp')
    await click('Redrive 2…')
    isBroken = false
    await fill('Reason, for the audit', 'the courier is back')
    await click('Redrive 2')
    await see('2 dead letters marked.')
    await eventually(async () => (await ac.deadLetters.count({ status: 'resolved' })) === 2)
    await go('events/order-1')
    await see('Settled.')
    expect((await ac.audit.list())[0]).toMatchObject({ what: 'letter.redrive', reason: 'the courier is back' })
    expect(errors).toEqual([])
  })

  it('pauses and resumes a subscription from its row', async () => {
    const { ac, errors, go, see, click } = await openPage()
    ac.subscribe({ id: 'mail', handle: () => {} })
    await ac.start()
    await go('subscriptions?id=mail')
    await click('Pause')
    await see('It goes on from its checkpoint')
    expect((await ac.subscriptions.get('mail').status()).status).toBe('paused')
    await click('Resume')
    await eventually(async () => (await ac.subscriptions.get('mail').status()).status === 'active')
    expect(errors).toEqual([])
  })

  it('is used by keyboard: pages, the palette, rows', async () => {
    const { emit, page, go, see } = await openPage()
    await emit('order-1')
    await go()
    await see('Overview', 'h1')
    await page.keyboard.press('g')
    await page.keyboard.press('e')
    await see('Events', 'h1')
    await see('lamp.lit')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await see('Nothing follows it', 'aside')
    expect(page.url()).toContain('event=order-1')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('audit')
    await page.keyboard.press('Enter')
    await see('Audit', 'h1')
  })

  it('asks for the token, and shows nothing before', async () => {
    const { emit, page, go, see, click, fill } = await openPage({ token: 'a-token-of-this-test' })
    await emit('order-1')
    await go('events')
    await fill('Token', 'a-wrong-token-given')
    await click('Sign in')
    await see('That token is not known here')
    expect(await page.evaluate('document.body.innerText')).not.toContain('lamp.lit')
    await fill('Token', 'a-token-of-this-test')
    await click('Sign in')
    await see('lamp.lit')
  })

  it.each([
    { width: 360, dark: false },
    { width: 768, dark: true },
    { width: 1440, dark: false },
    { width: 1440, dark: true },
  ])('keeps its layout and its contrast at $width px, dark: $dark', async (look) => {
    const { ac, emit, page, errors, go, see } = await openPage(look)
    ac.subscribe({
      id: 'courier-of-a-rather-long-name:with-parts',
      retry: { maxAttempts: 1 },
      handle: () => {
        throw new GiveUp('the courier is out, and says so at some length: no parcel was taken, and none will be today')
      },
    })
    ac.subscribe({ id: 'mail', handle: () => {} })
    await ac.start()
    await emit('order-1', {
      key: 'a-key-of-some-length-0123456789',
      payload: { total: 90, customer: { email: 'ada@example.com' } },
    })
    await eventually(async () => (await ac.deadLetters.count()) === 1)
    for (const path of [
      '',
      'events',
      'events/order-1',
      'subscriptions?id=mail',
      'observers',
      'workflows',
      'deliveries',
      'dead-letters?letter=1',
      'database',
      'audit',
    ]) {
      await go(path)
      await see('', 'h1')
      await see('live', '.foot')
      const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      expect(overflow, `${path} is wider than the screen`).toBeLessThanOrEqual(1)
      expect(await violations(page), path).toEqual([])
    }
    expect(errors).toEqual([])
  })
})

/** Serious and critical findings of axe. The script runs in the page without a tag, so the page's policy stays as it is. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  const found = await page.evaluate<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }>(
    'axe.run()',
  )
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]!.html.slice(0, 200)}`)
}

/**
 * Looks and clicks by plain scripts: the locators of Playwright make code from text in this process, which the tests forbid.
 */
function handsOn(page: Page) {
  const ask = <T>(script: string) => page.evaluate<T>(script)
  return {
    see: (text: string, where = 'body') =>
      eventually(() =>
        ask<boolean>(
          `document.querySelector(${JSON.stringify(where)})?.innerText.includes(${JSON.stringify(text)}) ?? false`,
        ),
      ),
    click: (name: string) =>
      eventually(() =>
        ask<boolean>(`(() => {
          const all = [...document.querySelectorAll('a, button')].filter((one) => !one.disabled)
          const named = all.find((one) => one.textContent.trim() === ${JSON.stringify(name)}) ?? all.find((one) => one.textContent.trim().startsWith(${JSON.stringify(name)}))
          named?.click()
          return named !== undefined
        })()`),
      ),
    fill: (label: string, text: string) =>
      eventually(() =>
        ask<boolean>(`(() => {
          const named = [...document.querySelectorAll('label')].find((one) => one.textContent.trim().startsWith(${JSON.stringify(label)}))
          const input = named?.querySelector('input')
          if (!input) return false
          Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(input, ${JSON.stringify(text)})
          input.dispatchEvent(new Event('input', { bubbles: true }))
          return true
        })()`),
      ),
  }
}
