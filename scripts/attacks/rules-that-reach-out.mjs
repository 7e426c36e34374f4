/** Somebody who may edit rules, or a file that they include, tries to read the machine and to reach inside the network. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const title = 'Rules read no file outside of their folder, and reach no service that keeps credentials.'

const secret = 'root:canary-line-of-another-file'
const rule = (action) => `[observers.a]\non = "*"\n[[observers.a.actions]]\n${action}\n`
const slack = '[providers.slack]\nwebhook_url = "https://hooks.slack.example/x"\n'
const elastic = '[providers.search]\nkind = "elasticsearch"\nurl = "http://127.0.0.1:1"\n'
const webhook = (rest) => rule(`type = "webhook"\n${rest}`)
const deep = 50_000

export async function run({ start, folder, hold }) {
  const outside = join(folder, '../outside.txt')
  writeFileSync(outside, secret)
  symlinkSync(outside, join(folder, 'link.toml'))
  mkdirSync(join(folder, 'rules'))
  const attempts = {
    'an include outside': ['include = ["../outside.txt"]', 'leads out of the folder'],
    'an absolute include': [`include = ["${outside}"]`, 'is an absolute path'],
    'a linked include': ['include = ["rules/../link.toml"]', 'leads out of the folder'],
    'nested lists': [`[log]\na = ${'['.repeat(deep)}${']'.repeat(deep)}`, 'aftercommit.toml:2:'],
    'a long text': [`[log]\na = "${'x'.repeat(deep * 20)}"`, 'aftercommit.toml:2:'],
    'a templated content type': [
      webhook('url = "https://a.example/"\nheaders = { content-type = "text/{{ a }}" }\nbody = "<b>{{ b }}</b>"'),
      'content type',
    ],
    'a button that the payload fills': [
      slack +
        rule('type = "slack"\nblocks = [{ type = "actions", elements = [{ type = "button", url = "{{ a }}" }] }]'),
      'before its path',
    ],
    'a system index': [elastic + rule('type = "search"\nindex = ".security-7"'), 'a dot'],
    ...Object.fromEntries(
      ['100.100.100.200', '[fd00:ec2::254]', '169.254.169.254'].map((host) => [
        `the metadata service ${host}`,
        [
          `[network]\nallow = ["a.internal", "100.64.0.0/10", "fc00::/7"]\n${webhook(`url = "http://${host}/"`)}`,
          'cloud',
        ],
      ]),
    ),
  }
  for (const [what, [toml, said]] of Object.entries(attempts)) {
    const { exited, lines } = await start(toml, { isReady: false })
    const { code } = await exited
    const text = lines.join('\n')
    hold(code !== 0 && code !== null, `${what} was accepted`)
    hold(text.includes(said), `${what} was answered: ${text.slice(0, 500)}`)
    hold(!text.includes('canary'), `${what} showed a line of a file outside`)
    hold(!text.includes('call stack'), `${what} ran out of stack`)
  }
}
