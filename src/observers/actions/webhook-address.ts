/** The address of a webhook: its origin is fixed when the configuration is loaded, its path and query may be templates. */
import type { Scope } from '../../conditions/index.ts'
import { isSecretName } from '../../runtime/index.ts'
import type { TemplateCompiler } from '../action.ts'
import { judgeUrl, type NetworkRules, type Target, toTarget } from '../network/index.ts'
import { ObserverError } from '../observer-error.ts'
import { looksLikeToken, maskUrl, secretsOfUrl } from './record.ts'
import { constantText, unusable } from './rendering.ts'

export interface Address {
  readonly origin: string
  /** What is written in it and looks like a secret; what an event brings is not. */
  readonly secrets: readonly string[]
  /** `masked` is what may be kept of it. Throws OB003 when the event makes an address of it that is not sent to. */
  at(scope: Scope): Place
}

export interface Place extends Target {
  readonly masked: string
  /** What `masked` leaves out. */
  readonly secrets: readonly string[]
}

export function prepareAddress(source: string, templates: TemplateCompiler, rules: NetworkRules): Address {
  const template = templates.text(source, 'url', 'url')
  const constant = constantText(template)
  const fixed = constant ?? source.slice(0, templates.firstHoleOfUrl(source))
  const refusal = judgeUrl(fixed, rules)
  if (refusal !== undefined) {
    throw new ObserverError(
      'OB012',
      `The address is refused, because ${refusal}. ` +
        'Give a public http or https address, or add a private one to [network] allow.',
    )
  }
  const { origin } = new URL(fixed)
  const secrets = writtenSecrets(source)
  if (constant !== undefined) {
    const always = toPlace(new URL(constant))
    return { origin, secrets, at: () => always }
  }
  const what = `The webhook to ${origin}`
  return {
    origin,
    secrets,
    at(scope) {
      const text = template.render(scope)
      const problem = judgeUrl(text, rules)
      if (problem !== undefined) throw unusable(what, `its address cannot be used, because ${problem}`)
      const url = new URL(text)
      if (url.origin !== origin) throw unusable(what, 'its template changed the host')
      return toPlace(url)
    },
  }
}

function toPlace(url: URL): Place {
  return { ...toTarget(url), masked: maskUrl(url), secrets: secretsOfUrl(url) }
}

function writtenSecrets(source: string): string[] {
  const path = source.replace(/^[a-z]+:\/\/[^/?#]*/i, '').replace(HOLE, '')
  const named = [...path.matchAll(/[?&]([^=&#]+)=([^&#]*)/g)].filter(([, name = '']) => isSecretQuery(name))
  return [...path.split(/[/?&=#]/).filter(looksLikeToken), ...named.map(([, , value = '']) => value)]
}

const HOLE = /\{\{.*?\}\}/gs

function isSecretQuery(name: string): boolean {
  return isSecretName(name) || /^(key|pass|sig)$/i.test(name)
}
