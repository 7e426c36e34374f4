/** What a test gives as configuration: the text of a file, a file, or observers in TypeScript. */
import type { ConfigurationSource, Settings } from '../configuration/index.ts'
import type { CheckPorts, ObserverConfig, ObserverOptions } from '../observers/index.ts'

/**
 * TOML, the path of a file, or observers as `ac.observers.add` takes them, by name. Observers in TypeScript have
 * providers to send through and somewhere to send alerts to; in TOML they have what the text says.
 */
export type TestConfig =
  | string
  | { readonly file: string }
  | { readonly observers: Readonly<Record<string, ObserverOptions>> }

export interface LoadedConfig {
  readonly settings: Settings
  readonly observers: readonly ObserverConfig[]
}

/** Throws `ConfigError` with every mistake. */
export async function loadConfig(config: TestConfig, ports: CheckPorts): Promise<LoadedConfig> {
  if (typeof config === 'string') return readSource({ text: config, name: 'observers.toml' }, ports)
  if ('file' in config) return readSource(config, ports)
  const [{ toObserverConfig }, { toSettings }] = await tools()
  const settings = toSettings({
    providers: {
      slack: { webhook_url: 'https://slack.invalid/hook' },
      smtp: { url: 'smtp://mail.invalid', from: 'aftercommit@mail.invalid' },
      sms: { account: 'AC1', token: 'token', from: '+12025550123', base_url: 'https://sms.invalid' },
      push: VAPID,
    },
    failure_alerts: { slack: '#alerts' },
    templates: { env: Object.keys(ports.env) },
  })
  const observers = Object.entries(config.observers).map(([name, options]) =>
    toObserverConfig(name, options, settings, ports),
  )
  return { settings, observers }
}

/** A pair that fits together and that nobody trusts. */
const VAPID = {
  subject: 'mailto:aftercommit@mail.invalid',
  public_key: 'BBYnYagesmfs6GAXoclQ26csv-UakDzUY8OOHfl6YyN0H7F3GIUHgeHZgtnIxj5nnWUW40Ah8KmAeIC5WdRMP6U',
  private_key: 'UXkwDnHlzLNuqVja9Kg9NL3fotBADgfpHzsy69ayC6U',
}

async function readSource(source: ConfigurationSource, ports: CheckPorts): Promise<LoadedConfig> {
  const [{ loadConfigurationFile }, { ConfigError }] = await tools()
  const checked = await loadConfigurationFile(source, ports)
  if (!checked.ok) throw new ConfigError(checked.mistakes)
  return { settings: checked, observers: checked.observers }
}

function tools() {
  return Promise.all([import('../observers/index.ts'), import('../configuration/index.ts')])
}
