import { Page } from '../../frame/page.tsx';

export function EnvironmentScreen() {
  return <Page title="EnvironmentScreen">{null}</Page>;
}
