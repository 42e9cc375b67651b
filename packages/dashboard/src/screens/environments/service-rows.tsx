import type { EnvironmentService } from '@runyard/contract/environments/services';
import { useId } from 'react';
import { Hint } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { FaultText } from '../../parts/fault-text.tsx';
import { useFault } from '../../parts/form.tsx';
import styles from '../../parts/rows.module.css';

/** Returns the services without those whose name, command and image are still empty. */
export const filledServices = (services: readonly EnvironmentService[]): EnvironmentService[] =>
  services.filter((service) => [service.name, service.command, service.image].some((text) => text?.trim()));

/** Lets a person edit the programs that run beside the agent. Does not change members of a service that it does not show. */
export function ServiceRows({
  path,
  services,
  set,
}: {
  path: string;
  services: readonly EnvironmentService[];
  set: (services: readonly EnvironmentService[]) => void;
}) {
  return (
    <fieldset className={styles.rows}>
      <legend>Services</legend>
      {services.map((service, index) => (
        <ServiceRow
          key={index}
          number={index + 1}
          path={`${path}.${index}`}
          service={service}
          change={(next) => set(services.with(index, next))}
          remove={() => set(services.toSpliced(index, 1))}
        />
      ))}
      <Button small icon="plus" start onClick={() => set([...services, { name: '' }])}>
        Add service
      </Button>
      <Hint>
        Programs beside the agent, such as a database. With an image, a service starts in a container, and its command
        has the arguments of the image. The agent begins when each port accepts connections and each check exits with 0
      </Hint>
    </fieldset>
  );
}

function ServiceRow({
  number,
  path,
  service,
  change,
  remove,
}: {
  number: number;
  path: string;
  service: EnvironmentService;
  change: (service: EnvironmentService) => void;
  remove: () => void;
}) {
  const id = useId();
  const fault = useFault(`${path}.*`);
  const set = (next: Partial<EnvironmentService>) => {
    const { command, image, port, ready, ...others } = { ...service, ...next };
    change({
      ...others,
      ...(command ? { command } : {}),
      ...(image ? { image } : {}),
      ...(port === undefined ? {} : { port }),
      ...(ready ? { ready } : {}),
    });
  };
  const field = (what: string) => ({
    mono: true,
    'aria-label': `${what} of service ${number}`,
    autoComplete: 'off',
    spellCheck: false,
  });
  return (
    <>
      <div className={styles.service}>
        <input
          {...field('name')}
          id={id}
          aria-invalid={fault === undefined ? undefined : true}
          aria-describedby={fault === undefined ? undefined : `${id}-fault`}
          placeholder="redis"
          value={service.name}
          onChange={({ target }) => change({ ...service, name: target.value })}
        />
        <input
          {...field('command')}
          placeholder="exec redis-server"
          value={service.command ?? ''}
          onChange={({ target }) => set({ command: target.value })}
        />
        <input
          {...field('image')}
          placeholder="or image, such as redis:8"
          value={service.image ?? ''}
          onChange={({ target }) => set({ image: target.value })}
        />
        <input
          {...field('port')}
          type="number"
          placeholder="6379"
          value={service.port ?? ''}
          onChange={({ target }) => set({ port: target.value === '' ? undefined : Number(target.value) })}
        />
        <input
          {...field('check')}
          placeholder="check, such as redis-cli ping"
          value={service.ready ?? ''}
          onChange={({ target }) => set({ ready: target.value })}
        />
        <Button kind="ghost" icon="x" aria-label={`Remove service ${number}`} onClick={remove} />
      </div>
      {fault && <FaultText id={`${id}-fault`} fault={fault} control={id} />}
    </>
  );
}
