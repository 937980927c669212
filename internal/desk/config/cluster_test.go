package config

import (
	"slices"
	"strings"
	"testing"
)

const clusterKey = "0123456789abcdef0123456789abcdef"

func TestCluster(t *testing.T) {
	env := map[string]string{"KEY": clusterKey, "URL": "nats://mcpx:hush@a:4222"}
	c, err := Parse("c.json", []byte(`{"mcpServers":{},"cluster":{"nats":["${URL}","tls://b"],"key":["${KEY}","`+strings.Repeat("o", 32)+`"],
		"name":"one","bucket":"team-1","tls":{"ca":"/ca.pem","cert":"/c.pem","key":"/k.pem"},"credentials":"/x.creds"}}`), Options{Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	of := c.Cluster
	if len(of.NATS) != 2 || of.NATS[0] != "nats://mcpx:hush@a:4222" || len(of.Keys) != 2 || of.Keys[0] != clusterKey || of.Name != "one" ||
		of.Bucket != "team-1" || of.Credentials != "/x.creds" || of.TLS.CA == "" || of.TLS.Cert == "" || of.TLS.Key == "" {
		t.Errorf("%+v", of)
	}
	for _, secret := range []string{clusterKey, "hush", strings.Repeat("o", 32)} {
		if !slices.Contains(c.Secrets, secret) {
			t.Errorf("%s is not struck out", secret)
		}
	}
	if c, err = Parse("c.json", []byte(`{"mcpServers":{},"cluster":{"nats":"nats://a","key":"`+clusterKey+`"}}`), Options{}); err != nil ||
		c.Cluster.Bucket != "mcpx" || len(c.Cluster.NATS) != 1 || len(c.Cluster.Keys) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, off := range []string{`false`, `null`, `{"enabled":false}`} {
		if c, err = Parse("c.json", []byte(`{"mcpServers":{},"cluster":`+off+`}`), Options{}); err != nil || c.Cluster != nil {
			t.Errorf("%s: %+v, %v", off, c.Cluster, err)
		}
	}
	for text, want := range map[string]string{
		`{"nats":"nats://a"}`:                                               "cluster: needs nats and key",
		`{"key":"` + clusterKey + `"}`:                                      "cluster: needs nats and key",
		`{"nats":[],"key":"` + clusterKey + `"}`:                            "cluster: needs nats and key",
		`{"nats":"nats://a","key":[]}`:                                      "cluster: needs nats and key",
		`{"nats":"nats://a","key":"short"}`:                                 "cluster.key: must have at least 32 characters",
		`{"nats":"nats://a","key":["` + clusterKey + `","short"]}`:          "must have at least 32 characters",
		`{"nats":"nats://a","key":"${NOTHING}"}`:                            "NOTHING is not set",
		`{"nats":"http://a","key":"` + clusterKey + `"}`:                    "must be the URL of a NATS server",
		`{"nats":7,"key":"` + clusterKey + `"}`:                             "cluster.nats",
		`{"nats":"nats://a","key":"` + clusterKey + `","bucket":"a b"}`:     "cluster.bucket: must have",
		`{"nats":"nats://a","key":"` + clusterKey + `","tls":{"cert":"c"}}`: "tls needs both cert and key",
		`{"nats":"nats://a","key":"` + clusterKey + `","subject":"x"}`:      "cluster.subject: unknown key",
		`"nats://a"`: "cluster: must be an object",
	} {
		if _, err := Parse("c.json", []byte(`{"mcpServers":{},"cluster":`+text+`}`), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
