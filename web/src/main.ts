import './tokens.css';
import './base.css';
import { mount } from 'svelte';
import App from './App.svelte';
import { loadTheme } from './lib/theme';

loadTheme();
mount(App, { target: document.getElementById('app')! });
